"""Cases that break one rule each, in the structures of a segment or an index; those of manifests are in manifests.py.

An opener finds some, a reader those that it uses, a verifier all: `found_by` is the last of these that has to.
"""

from cases import dataset_case, segment_case
from layout import (ATTRIBUTE, BLOCK, CATEGORIES, CHUNKS, EDGES, ENTRIES, FIELD_LEN, FIELD_OFFSET, FIELD_VALIDITY,
                    KEYS, LONG, LONG_MARK, METADATA, RAW_LEN, SEGMENTS, SLOTS, VALIDITY, Sample, Shape, crc, lz4, unlz4, up)

PLAIN = [Sample(b"hello"), Sample(b""), Sample(b"x" * 10)]
KEYED = [Sample(b"hello", b"a"), Sample(b"", b"bc"), Sample(b"xyz", b"d")]
ANY = ["ok", "damaged"]


def opener(path, rules, about, samples=PLAIN, **change):
    segment_case("invalid/" + path, rules, about, samples, **{"found_by": "opener", "open": "damaged", "verify": "damaged", **change})


def reader(path, rules, about, fails, samples=PLAIN, **change):
    """`fails`: what has to give an error; the rest is right or an error."""
    segment_case("invalid/" + path, rules, about, samples,
                 **{"found_by": "reader", "open": ANY, "fails": fails, "verify": "damaged", **change})


def verifier(path, rules, about, samples=PLAIN, **change):
    segment_case("invalid/" + path, rules, about, samples, **{"found_by": "verifier", "open": ANY, "verify": "damaged", **change})


def read(*ordinals):
    return [{"read": i} for i in ordinals]


def set_to(stage, **values):
    """A change that gives members of header, footer or directory other values."""
    return {stage: lambda found: found.update(values)}


def record(kind, member, value):
    """A change of one number of a section's record."""
    def change(directory):
        next(found for found in directory["records"] if found[0] == kind)[member] = value
    return {"directory": change}


def section(kind, change):
    """A change of a section's list [kind, item, width, data]."""
    return {"sections": lambda found: change(next(one for one in found if one[0] == kind))}


def data(change):
    """A change of a section's bytes."""
    return lambda one: one.__setitem__(3, change(one[3]))


def without(*kinds):
    def change(found):
        found[:] = [one for one in found if one[0] not in kinds]
    return {"sections": change}


def more(*added):
    """Sections beside those that belong there."""
    def change(found):
        found.extend(list(one) for one in added)
        found.sort(key=lambda one: one[:2])
    return {"sections": change}


def flip(at):
    """One bit of the finished file; its checksums stay."""
    def change(data):
        data[at] ^= 1
    return {"bytes": change}


def flip_section(kind, at=0, checksums=False):
    """One bit of a section, or of its list of checksums."""
    where = []

    def directory(found):
        one = next(one for one in found["records"] if one[0] == kind)
        where.append(one[3] + (up(one[4], 4) if checksums else at))

    def change(data):
        data[where[0]] ^= 1
    return {"directory": directory, "bytes": change}


def frames():
    either = ["damaged", "not_grainstore"]
    opener("fil-1-empty.seg", "FIL-1", "no bytes", open=either, verify=either, bytes=lambda d: d.clear())
    opener("hdr-1-short.seg", "HDR-1", "the first 100 bytes", open=either, verify=either, bytes=lambda d: d.__delitem__(slice(100, None)))
    opener("hdr-1-magic.seg", "HDR-1", "another magic", **flip(1), open="not_grainstore", verify=either)
    opener("hdr-1-crc.seg", "HDR-1", "a wrong crc", **set_to("header", crc=1))
    opener("hdr-1-kind.seg", "HDR-1", "kind 3", **set_to("header", kind=3))
    opener("hdr-1-kind-index.seg", "HDR-1 FIL-3", "a segment whose header says index", open=either, verify=either, **set_to("header", kind=2))
    opener("hdr-1-reserved.seg", "HDR-1 VER-1", "a reserved byte that is 1 without a compatible bit",
           **set_to("header", reserved=bytes(4070) + b"\1"))
    opener("ftr-1-magic.seg", "FTR-1", "another magic", open=either, verify=either, **set_to("footer", magic=b"GRAINENE"))
    opener("ftr-1-crc.seg", "FTR-1", "a wrong crc", **set_to("footer", crc=1))
    opener("ftr-1-reserved.seg", "FTR-1", "reserved bytes that are not 0", **set_to("footer", reserved=b"\0" * 7 + b"\1"))
    opener("ftr-1-file-len.seg", "FTR-1", "another length", **set_to("footer", file_len=7 * BLOCK))
    opener("ftr-1-cut.seg", "FTR-1 FIL-1", "the last block is missing", open=either, verify=either,
           bytes=lambda d: d.__delitem__(slice(-BLOCK, None)))
    opener("ftr-1-cut-byte.seg", "FTR-1 FIL-1", "the last byte is missing", open=either, verify=either,
           bytes=lambda d: d.pop())
    opener("ftr-1-appended.seg", "FTR-1 FIL-1", "a block more", open=either, verify=either,
           bytes=lambda d: d.extend(bytes(BLOCK)))
    opener("ftr-2-index-offset.seg", "FTR-2 DIR-4", "the index begins after the directory", **set_to("footer", index_offset=BLOCK * 99))
    opener("ftr-2-index-offset-odd.seg", "FTR-2", "an offset that is no multiple of 4096", **set_to("footer", index_offset=8193))
    opener("ftr-2-directory-offset.seg", "FTR-2", "a directory in another block", **set_to("footer", directory_offset=2 * BLOCK))
    opener("ftr-2-directory-len.seg", "DIR-1 FTR-2", "a directory cut short", **set_to("footer", directory_len=64))
    verifier("ftr-3-features.seg", "FTR-3", "compatible bits that the header does not have", **set_to("footer", compatible=2))
    dataset_case("invalid/ftr-4-index-offset.grain", "FTR-4", "an index file that has bytes before its index",
                 PLAIN[:1], PLAIN[1:], merged={"body": bytes(10)}, found_by="opener", open="damaged", verify="damaged")


def directories():
    opener("dir-1-crc.seg", "DIR-1", "a flipped bit of sample_count", **flip(-BLOCK + 8))
    opener("dir-1-crc-hash-seed.seg", "DIR-1", "a flipped bit of a hash seed that no key uses", **flip(-BLOCK + 32))
    opener("dir-1-crc-footer.seg", "DIR-1 FTR-1", "another directory_crc", **set_to("footer", directory_crc=1))
    for name, member, values in (("magic", "magic", [b"GRAINDIS"]), ("n", "n", [0, 2, 2**40 + 1]), ("log2", "log2", [11, 31]),
                                 ("segment-count", "segment_count", [0, 2]), ("reserved", "reserved", [b"\0\1\0"]),
                                 ("alignment", "alignment", [3, 8192]), ("section-count", "section_count", [4, 2**32 - 1])):
        for value in values:
            shown = f"-{value}" if len(values) > 1 else ""
            opener(f"dir-1-{name}{shown}.seg", "DIR-1 DIR-5", f"{member} is {value!r}", **set_to("directory", **{member: value}))
    verifier("dir-1-stored-bytes.seg", "DIR-1", "a wrong sum of stored lengths", stated={"stored_bytes": 16}, **set_to("directory", stored_bytes=16))
    verifier("dir-1-payload-bytes.seg", "DIR-1", "a wrong sum of raw lengths", stated={"payload_bytes": 14}, **set_to("directory", payload_bytes=14))
    verifier("dir-1-edge-count.seg", "DIR-1 CHK-3", "a wrong number of edges", **set_to("directory", edge_count=1))

    def swapped(found):
        found[0], found[1] = found[1], found[0]
    opener("dir-2-order.seg", "DIR-2", "two records in the wrong order", sections=swapped)
    opener("dir-2-twice.seg", "DIR-2", "a section twice", sections=lambda found: found.append(list(found[-1])))
    for name, kind in ("segments", SEGMENTS), ("entries", ENTRIES), ("chunks", CHUNKS), ("edges", EDGES), ("metadata", METADATA):
        opener(f"dir-3-no-{name}.seg", "DIR-3", f"no section {kind}", **without(kind))
    opener("dir-3-no-slots.seg", "DIR-3", "keys without slots", KEYED, **without(SLOTS))
    opener("dir-3-only-keys.seg", "DIR-3", "KEYS alone", **more([KEYS, 0, 0, b"\1a\1b\1c"]))
    opener("dir-3-empty.seg", "DIR-3 DIR-5", "a section of no bytes", **more([LONG, 0, 16, b""]))
    opener("dir-4-apart.seg", "DIR-4", "a section a block after its place", **record(METADATA, 3, 7 * BLOCK))
    opener("dir-4-overlap.seg", "DIR-4", "two sections at one place", **record(ENTRIES, 3, 2 * BLOCK))
    opener("dir-4-huge.seg", "DIR-4 DIR-5", "a length near 2^64", **record(METADATA, 4, 2**64 - 4096))
    opener("dir-4-directory.seg", "DIR-4", "a block of zeros between the last section and the directory",
           footer=later_directory, bytes=lambda data: data.__setitem__(slice(-BLOCK, -BLOCK), bytes(BLOCK)))
    opener("dir-5-long.seg", "DIR-5", "a length of LONG that is no multiple of 16", **more([LONG, 0, 16, bytes(17)]))
    opener("dir-5-entries.seg", "DIR-5", "an entry too few", **section(ENTRIES, data(lambda d: d[:-16])))
    opener("dir-5-edges.seg", "DIR-5", "a byte too many", **section(EDGES, data(lambda d: d + b"\0")))
    opener("dir-5-chunks-width.seg", "DIR-5 CHK-2", "CHUNKS of width 3", **section(CHUNKS, lambda one: one.__setitem__(slice(2, 4), [3, bytes(3)])))
    opener("dir-5-segments-width.seg", "DIR-5", "SEGMENTS of width 8", **record(SEGMENTS, 2, 8))
    opener("dir-5-item.seg", "DIR-5", "METADATA with item 1", **record(METADATA, 1, 1))
    opener("dir-5-reserved.seg", "DIR-5", "a record whose reserved bytes are not 0", **record(METADATA, 6, 1))
    opener("dir-6-metadata.seg", "DIR-6", "a flipped bit of METADATA", **flip_section(METADATA, 5))
    opener("dir-6-segments.seg", "DIR-6", "a flipped bit of SEGMENTS", **flip_section(SEGMENTS, 8))
    reader("dir-6-entries.seg", "DIR-6", "a flipped bit of ENTRIES", read(0, 1, 2), **flip_section(ENTRIES, 20))
    reader("dir-6-checksums.seg", "DIR-6", "a flipped bit of the checksums of ENTRIES", read(0, 1, 2), **flip_section(ENTRIES, checksums=True))
    opener("dir-6-list-metadata.seg", "DIR-6", "another checksums_crc of METADATA", **record(METADATA, 5, 1))
    reader("dir-6-list-entries.seg", "DIR-6", "another checksums_crc of ENTRIES", read(0, 1, 2), **record(ENTRIES, 5, 1))
    reader("dir-6-list-chunks.seg", "DIR-6", "another checksums_crc of CHUNKS", [{"order": "chunked"}], **record(CHUNKS, 5, 1))
    reader("dir-6-chunks.seg", "DIR-6", "a flipped bit of CHUNKS", [{"order": "chunked"}], **flip_section(CHUNKS))
    reader("dir-6-slots.seg", "DIR-6", "a flipped bit of SLOTS", [{"find": "6263"}], KEYED, **flip_section(SLOTS, 6))
    reader("dir-6-keys.seg", "DIR-6", "a flipped bit of KEYS", [{"key": 0}, {"find": "61"}], KEYED, **flip_section(KEYS, 1))


def later_directory(footer):
    """The directory, a block later."""
    footer.update(directory_offset=footer["directory_offset"] + BLOCK, file_len=footer["file_len"] + BLOCK)


def segments():
    def change(**values):
        return {"index": lambda index: index.segments[0].__setitem__(values["at"], values["to"])}

    end = BLOCK + 15
    for name, to in ("zero", 0), ("more", 4):
        opener(f"seg-1-{name}.seg", "SEG-1", f"a count of {to}", **change(at=0, to=to))
    opener("seg-2-past-the-index.seg", "SEG-2", "data that end after index_offset", **change(at=1, to=2 * BLOCK + 1))
    opener("seg-2-in-the-header.seg", "SEG-2", "data that end in the header", **change(at=1, to=BLOCK - 1))
    reader("seg-2-too-small.seg", "SEG-2", "data_end before the end of the last sample", read(2), **change(at=1, to=end - 1))
    verifier("seg-2-too-large.seg", "SEG-2", "data_end after the end of the last sample", **change(at=1, to=end + 1))


def entries():
    def entry(i, member, value, **change):
        return {**change, "index": lambda index: index.entries[i].__setitem__(member, value)}

    reader("ent-1-segment.seg", "ENT-1", "an entry of segment 1, of one", read(0), **entry(0, 0, 1))
    reader("ent-2-offset.seg", "ENT-2", "a sample in the header, whose bytes have its crc", read(0),
           index=lambda index: index.entries[0].__setitem__(slice(1, 3), [100, crc(bytes(5))]))
    reader("ent-3-length.seg", "ENT-3 SEG-2", "a sample longer than the data", read(0), **entry(0, 4, 5000))
    same = [Sample(b"same"), Sample(b"same"), Sample(b"last")]
    verifier("ent-4-overlap.seg", "ENT-4", "two samples at one place, which both have the bytes of", same,
             offsets=([BLOCK, BLOCK, BLOCK + 4], BLOCK + 8))
    verifier("ent-4-order.seg", "ENT-4", "a sample before the one before it", same,
             offsets=([BLOCK + 4, BLOCK, BLOCK + 8], BLOCK + 12))
    reader("ent-5-flipped-byte.seg", "ENT-5 RD-1", "a flipped bit of a sample", read(0), **flip(BLOCK))
    reader("ent-5-crc.seg", "ENT-5", "another crc", read(2), **entry(2, 2, 7))
    reader("ent-6-empty.seg", "ENT-6", "LZ4 of no bytes", read(1), **entry(1, 3, True))
    reader("ent-6-long.seg", "ENT-6", "LZ4 that is long", read(0),
           index=lambda index: (index.entries[0].__setitem__(slice(3, 5), [True, LONG_MARK]), index.long.append([0, 5])))
    reader("lng-1-absent.seg", "LNG-1", "a long sample that LONG does not have", read(0), **entry(0, 4, LONG_MARK))
    reader("lng-1-short.seg", "LNG-1", "a long sample of 5 bytes", read(0),
           index=lambda index: (index.entries[0].__setitem__(4, LONG_MARK), index.long.append([0, 5])))
    verifier("lng-1-more.seg", "LNG-1", "a sample in LONG that is not long", index=lambda index: index.long.append([0, LONG_MARK]))

    chunky = [Sample(b"a" * 3000), Sample(b"b" * 3000), Sample(b"c" * 3000)]
    verifier("chk-1-owner.seg", "CHK-1", "counts that add up and name the wrong samples", chunky,
             index=lambda index: index.counts.__setitem__(slice(None), [1, 1, 1, 0]))
    reader("chk-1-sum.seg", "CHK-1", "counts that do not add up", [{"order": "chunked"}], chunky,
           index=lambda index: index.counts.__setitem__(0, 1))
    verifier("chk-3-edge.seg", "CHK-3", "a bit too many", chunky, index=lambda index: index.edges.__setitem__(3, True))
    verifier("con-6-edges.seg", "CON-6", "an unused bit that is 1", chunky, **section(EDGES, data(lambda d: bytes([d[0] | 128]))))


def compressed():
    sequences = [(b"ab", 2, 50), (b"12345",)]
    packed = Sample(unlz4(sequences), block=lz4(*sequences))
    raw = Sample(b"raw")

    def raw_len(value, i=0):
        return {"index": lambda index: index.raw_len.__setitem__(i, value)}

    for value in (0, 56, 58, 2**26 + 1, 255 * packed.stored_len + 1):
        reader(f"raw-2-raw-len-{value}.seg", "RAW-2", f"a raw length of {value}, not 57", read(0), [packed, raw], **raw_len(value))
    verifier("raw-1-raw.seg", "RAW-1", "a raw length for a raw sample", [packed, raw], **raw_len(3, 1))
    verifier("raw-1-needless.seg", "RAW-1 DIR-3", "RAW_LEN without an LZ4 sample", index=lambda index: setattr(index, "has_raw_len", True))
    reader("raw-1-absent.seg", "RAW-1", "no RAW_LEN for an LZ4 sample", read(0), [packed, raw],
           index=lambda index: setattr(index, "has_raw_len", False))
    wrong = {"distance-0": lz4((b"ab", 0, 50), (b"12345",)), "distance-3": lz4((b"ab", 3, 50), (b"12345",)),
             "cut-literals": lz4(*sequences)[:-1], "cut-length": b"\xff\xff", "cut-distance": b"\x2fab\2",
             "ends-in-match": lz4(*sequences)[:6], "empty-last": b"\x2fab\2\0\x22\x50123"}
    for name, block in wrong.items():
        reader(f"con-4-{name}.seg", "CON-4 RAW-2", f"stored bytes that are not a valid LZ4 block: {name}", read(0), [Sample(packed.payload, block=block), raw])
    thick = Sample(b"sixteen letters!", block=lz4((b"sixteen letters!",)))
    verifier("smp-1-not-shrunk.seg", "SMP-1", "an LZ4 block longer than its payload", [thick])
    verifier("smp-2-misaligned.seg", "SMP-2", "a sample that is not on a multiple of 64", shape=Shape(alignment=64),
             offsets=([BLOCK, BLOCK + 5, BLOCK + 5], BLOCK + 15))
    verifier("smp-2-crossing.seg", "SMP-2", "alignment 0, and a sample that crosses a chunk's end", [Sample(b"a" * 4000), Sample(b"b" * 200)],
             shape=Shape(alignment=0), offsets=([BLOCK, BLOCK + 4000], BLOCK + 4200))
    verifier("siz-1-gap.seg", "SIZ-1", "a gap that alignment 1 does not ask for", offsets=([BLOCK, BLOCK + 6, BLOCK + 6], BLOCK + 16))
    verifier("con-5-after-the-data.seg", "CON-5", "a byte after the last sample that is not 0", **flip(2 * BLOCK - 1))
    verifier("con-5-between.seg", "CON-5", "a byte between samples that is not 0", shape=Shape(alignment=64), **flip(BLOCK + 6))
    verifier("con-5-after-a-section.seg", "CON-5", "a byte after a section that is not 0", **flip(3 * BLOCK - 1))
    verifier("con-5-after-the-directory.seg", "CON-5", "a byte before the footer that is not 0", **flip(-65))


def keys():
    many = [Sample(b"", b"%d" % i) for i in range(100)]
    loose = {"lookups": "any", "open": ANY}
    verifier("key-1-twice.seg", "KEY-1", "two samples of one key", [*KEYED, Sample(b"again", b"a")], **loose)
    reader("key-1-empty.seg", "KEY-1", "a key of no bytes", [{"key": 1}], [KEYED[0], Sample(b"", b""), KEYED[2]], lookups="any")
    reader("key-1-too-long.seg", "KEY-1", "a key of 65536 bytes", [{"key": 0}], [Sample(b"", b"k" * 65536)])
    reader("key-7-past-the-end.seg", "KEY-7", "a key that is cut short", [{"key": 2}], KEYED,
           index=lambda index: index.keys.__setitem__(2, b"\2d"))
    reader("con-7-too-many-bytes.seg", "CON-7", "a length in two bytes that one holds", [{"key": 1}], KEYED,
           index=lambda index: (index.keys.__setitem__(1, b"\x82\0bc"), index.groups.__setitem__(1, 8)))
    verifier("key-7-groups.seg", "KEY-7", "a group that begins in a key", many,
             index=lambda index: index.groups.__setitem__(1, index.groups[1] + 1), **loose)
    reader("key-7-groups-descend.seg", "KEY-7", "a group that begins after the end", [{"key": 99}], many,
           index=lambda index: index.groups.__setitem__(1, 10**9))
    verifier("key-7-more-keys.seg", "KEY-7", "bytes after the last key", KEYED, **{**loose, "index": lambda index: index.keys.append(b"\1e")})

    def swap(index):
        index.slots[0], index.slots[1] = index.slots[1], index.slots[0]
    verifier("key-4-order.seg", "KEY-4", "two slots of a bucket in the wrong order", many, index=swap, **loose)
    verifier("key-4-twice.seg", "KEY-4", "an ordinal in two slots, another in none", many,
             index=lambda index: index.slots.__setitem__(1, index.slots[0]), **loose)

    def beyond(index):
        index.slots[0] |= 255 if index.n > 100 else 127
    verifier("key-4-beyond.seg", "KEY-4", "a slot of a sample that there is not", KEYED, index=beyond, **loose)

    def moved(index):
        index.buckets[1] += 1
    verifier("key-2-bucket.seg", "KEY-2 KEY-5", "a slot in the bucket before its own", many, index=moved, **loose)
    verifier("key-5-first.seg", "KEY-5", "buckets that begin at 1", many, index=lambda index: index.buckets.__setitem__(0, 1), **loose)
    verifier("key-5-last.seg", "KEY-5", "buckets that end too early", many,
             index=lambda index: index.buckets.__setitem__(-1, 99), **loose)
    reader("key-5-past-the-end.seg", "KEY-5", "a bucket that ends after the slots", [{"find": "6162"}], KEYED,
           index=lambda index: index.buckets.__setitem__(1, 4))


def columns():
    kinds = Shape(attributes=(("b", "bool"), ("c", "category"), ("i", "int32")))
    rows = [Sample(b"", attributes={"b": True, "c": "x", "i": 3}), Sample(b"", attributes={"c": "y", "i": 4}),
            Sample(b"", attributes={"b": False, "c": "x"})]

    def value(item, i, stored):
        return {"shape": kinds, "index": lambda index: index.attributes[item].values.__setitem__(i, stored)}

    def categories(*names):
        return {"shape": kinds, "index": lambda index: index.attributes[1].categories.__setitem__(slice(None), names)}

    reader("atr-1-bool-2.seg", "ATR-1", "a bool of 2", [{"attributes": 0}], rows, **value(0, 0, b"\2"))
    opener("atr-1-no-section.seg", "ATR-1 DIR-3", "an attribute without a section", [Sample(attributes={"i": 1})],
           shape=Shape(attributes=(("i", "int8"),)), **without(ATTRIBUTE))
    opener("atr-1-width.seg", "ATR-1 DIR-5", "an int8 of two bytes", [Sample(attributes={"i": 1})],
           shape=Shape(attributes=(("i", "int8"),)), **section(ATTRIBUTE, lambda one: one.__setitem__(slice(2, 4), [2, b"\1\0"])))
    opener("atr-1-item.seg", "ATR-1", "an attribute that the schema does not have", **more([ATTRIBUTE, 0, 1, bytes(3)]))
    opener("atr-3-width.seg", "ATR-3", "an attribute of an unknown type, three bytes wide", [Sample(attributes={"o": b"abc"})],
           shape=Shape(attributes=(("o", "rgb8"),), opaque={"o": 3}))
    verifier("atr-2-not-zero.seg", "ATR-2", "a missing value that is not 0", rows, **value(2, 2, b"\1\0\0\0"))
    verifier("atr-2-minus-zero.seg", "ATR-2", "a missing value that is -0.0", [Sample(attributes={"f": 1.0}), Sample()],
             shape=Shape(attributes=(("f", "float32"),)), index=lambda index: index.attributes[0].values.__setitem__(1, b"\0\0\0\x80"))
    verifier("atr-2-needless.seg", "ATR-2", "a VALIDITY of ones", [Sample(attributes={"i": 1})],
             shape=Shape(attributes=(("i", "int8"),)), **more([VALIDITY, 0, 0, b"\1"]))
    verifier("con-6-validity.seg", "CON-6", "an unused bit that is 1", rows, shape=kinds,
             **section(VALIDITY, data(lambda d: bytes([d[0] | 128]))))
    opener("atr-2-item.seg", "ATR-2 DIR-5", "a VALIDITY of no attribute", **more([VALIDITY, 0, 0, b"\0"]))
    used = [{"attributes": 0}]
    reader("cat-1-twice.seg", "CAT-1", "a category twice", used, rows, **categories("x", "x"))
    reader("cat-1-not-utf-8.seg", "CAT-1", "a category that is not UTF-8", used, rows, **categories(b"x", b"\xff"))
    reader("cat-1-cut.seg", "CAT-1", "a category that is cut short", used, rows, shape=kinds,
           **section(CATEGORIES, data(lambda d: d[:-1])))
    reader("cat-1-varint.seg", "CAT-1 CON-7", "a length of more bytes than needed", used, rows, shape=kinds,
           **section(CATEGORIES, data(lambda d: b"\x81\0x\1y")))
    opener("cat-1-of-an-integer.seg", "CAT-1 DIR-5", "categories of an int8", [Sample(attributes={"i": 0})],
           shape=Shape(attributes=(("i", "int8"),)), **more([CATEGORIES, 0, 0, b"\1x"]))
    opener("cat-1-width.seg", "CAT-1 DIR-5", "codes of width 8", [Sample(attributes={"c": "x"})],
           shape=Shape(attributes=(("c", "category"),), category_width=8))
    verifier("dir-3-categories.seg", "DIR-3 CAT-2", "categories of an attribute that no sample has", [Sample()],
             shape=Shape(attributes=(("c", "category"),)), **more([CATEGORIES, 0, 0, b"\1x"]), stated={"categories": {"c": ["x"]}})
    reader("cat-2-code.seg", "CAT-2", "a code that is no category", [{"attributes": 1}], rows, **value(1, 1, b"\2"))
    reader("cat-2-no-categories.seg", "CAT-2", "a category where there are none", [{"attributes": 0}], [Sample(attributes={"c": "x"})],
           shape=Shape(attributes=(("c", "category"),)), stated={"categories": {"c": []}}, **without(CATEGORIES))
    fields()


def fields():
    two = Shape(fields=(("f", "bytes"), ("g", "uint16[3]")))
    rows = [Sample(b"abcdefgh", fields={"f": (0, 2), "g": (2, 6)}), Sample(b"ab", fields={"f": (0, 2)})]

    def pair(item, i, value, shape=two):
        return {"shape": shape, "index": lambda index: index.fields[item].values.__setitem__(i, value)}

    wide = Shape(fields=two.fields, field_width=8)
    opener("fld-1-no-lengths.seg", "FLD-1", "offsets without lengths", rows, shape=two, **without(FIELD_LEN))
    opener("fld-1-no-columns.seg", "FLD-1", "two fields without columns", rows, shape=two, **without(FIELD_LEN, FIELD_OFFSET, FIELD_VALIDITY))
    opener("fld-1-item.seg", "FLD-1", "columns of a field that there is not", **more(
        *([kind, 1, 4, bytes(12)] for kind in (FIELD_OFFSET, FIELD_LEN))))
    opener("fld-1-validity.seg", "FLD-1", "a FIELD_VALIDITY without columns", **more([FIELD_VALIDITY, 0, 0, b"\1"]))
    opener("fld-2-widths.seg", "FLD-2", "columns of two widths", rows, shape=two,
           **section(FIELD_LEN, lambda one: one.__setitem__(slice(2, 4), [8, bytes(16)])))
    reader("fld-2-outside.seg", "FLD-2", "a field that ends after the payload", read(0), rows, **pair(1, 0, (2, 7)))
    reader("fld-2-wraps.seg", "FLD-2", "an end past 2^64", read(0), rows, **pair(0, 0, (2**64 - 1, 2), wide))
    verifier("fld-3-not-zero.seg", "FLD-3", "a missing field with an offset", rows, **pair(1, 1, (1, 0)))
    verifier("fld-3-needless.seg", "FLD-3", "a FIELD_VALIDITY of ones", rows[:1], shape=two, **more([FIELD_VALIDITY, 0, 0, b"\1"]))
    verifier("fld-4-length.seg", "FLD-4", "an array of another length than its shape", [Sample(b"abcdefgh", fields={"f": (0, 2), "g": (2, 4)})],
             shape=two)
    verifier("fld-4-open-length.seg", "FLD-4", "an open array of two rows and a half", [Sample(bytes(20), fields={"data": (0, 20)})],
             shape=Shape(fields=(("data", "int32[,2]"),), columns=True))


def metadata():
    def document(attributes="", fields='{"name":"data","type":"bytes"}', user="{}"):
        return f'{{"schema":{{"attributes":[{attributes}],"fields":[{fields}]}},"user":{user}}}'.encode()

    def named(text):
        return document(fields=f'{{"name":"{text}","type":"bytes"}}')

    wrong = {
        "met-1-not-json": b"{", "met-1-trailing": document() + b"x", "con-8-mark": b"\xef\xbb\xbf" + document(),
        "con-8-not-utf-8": named("n").replace(b'"n"', b'"\xff"'), "met-1-array": b"[]", "met-1-no-user": document()[:-10] + b"}",
        "met-1-user-array": document(user="[]"), "met-3-user-broken": document(user='{"a":01}'),
        "met-1-no-fields-member": b'{"schema":{"attributes":[]},"user":{}}', "met-1-no-type": document(fields='{"name":"data"}'),
        "met-1-type-number": document(fields='{"name":"data","type":1}'), "met-1-twice": document()[:-1] + b',"user":{}}',
        "met-2-no-fields": document(fields=""), "met-2-empty-name": named(""), "met-2-long-name": named("n" * 256),
        "met-2-control": named("a\\u0085b"), "met-2-field-twice": document(fields=", ".join(['{"name":"data","type":"bytes"}'] * 2)),
        "met-2-attribute-and-field": document(attributes='{"name":"data","type":"int8"}'),
        "atr-3-empty-type": document(fields='{"name":"data","type":""}'),
        "atr-3-long-type": document(fields='{"name":"data","type":"%s"}' % ("t" * 256)),
        "atr-3-control-type": document(fields='{"name":"data","type":"a\\u001bb"}'),
    }
    for name, text in wrong.items():
        rule = name[:5].upper()
        opener(f"{name}.seg", rule, f"METADATA: {name[6:].replace('-', ' ')}", PLAIN[:1], shape=Shape(metadata=text))


def make():
    from manifests import make as make_manifests
    for part in (frames, directories, segments, entries, compressed, keys, columns, metadata, make_manifests):
        part()
