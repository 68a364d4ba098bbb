"""The valid cases: what each shows is one line."""

import struct

from cases import dataset_case, segment_case
from layout import External, Sample, Shape, lz4, unlz4, xxh64

LABEL = (("label", "int64"),)


def letters(count, length=20, keyed=False, first=0):
    """Samples whose payload is a letter repeated."""
    return [Sample(bytes([97 + i % 26]) * length, key=b"%d" % i if keyed else None) for i in range(first, first + count)]


def worked():
    """Section 14."""
    return [Sample(b"hello", b"a", attributes={"label": 5}), Sample(b"", b"bc"),
            Sample(b"x" * 4100, b"d", attributes={"label": -1})]


def ok(make, path, rules, about, *parts, **change):
    make("valid/" + path, rules, about, *parts, **{"open": "ok", "verify": "ok", **change})


def files():
    ok(segment_case, "fil-2-lone-segment.seg", "FIL-2 FPR-2 ATR-2", "the worked segment of section 14", worked(),
       shape=Shape(attributes=LABEL), absent_keys=["", "61ff", "6264"])
    ok(dataset_case, "fil-2-one-segment.grain", "FIL-2 MAN-4", "a dataset whose index is that of its segment", worked(),
       shape=Shape(attributes=LABEL), absent_keys=["65"])
    ok(segment_case, "fil-2-one-sample.seg", "FIL-1 KEY-2 SEG-3", "one sample of no bytes: the shortest file", [Sample()])
    split = [[Sample(b"%d" % i * 9, b"k%d" % i, attributes={"split": "dev" if i % 3 else "a"}) for i in range(a, b)]
             for a, b in ((0, 4), (4, 5), (5, 9))]
    ok(dataset_case, "fil-3-merged-index.grain", "FIL-3 ENT-1 CAT-3 KEY-2", "three segments, and categories numbered again "
       "in the merged index", *split, shape=Shape(attributes=(("split", "category"),)), absent_keys=["6b", "6b39"])
    ok(dataset_case, "man-3-names.grain", "MAN-3 GEN-3", "segments of other names, and a file that the manifest does not "
       "name", letters(2), letters(2, first=2), names=["b c.seg", "0"],
       beside={"valid/man-3-names.grain/notes.txt": b"not named by the manifest\n"})
    ok(dataset_case, "gen-1-generations.grain", "GEN-1 FPR-2", "three generations of 1, 2 and 4 segments",
       letters(3, 5, True), letters(2, 5, True, 3), letters(1, 5, True, 5), letters(4, 5, True, 6), generations=[1, 2, 4], absent_keys=["78"])
    for log2 in (13, 18, 30):
        ok(segment_case, f"hdr-2-chunk-size-{log2}.seg", "HDR-2 SEG-3", f"chunks of 2^{log2} bytes", letters(3, 5000),
           shape=Shape(log2=log2))


def room_to_grow():
    def compatible(part):
        part["compatible"] = 0x80000001
        part["reserved"] = b"\x5a" * len(part["reserved"])

    def members(document):
        document["compatible_features"] = 4
        document["a"] = {"b": [1, {"c": None}], "d": 1e300}
        document["segments"][0]["colour"] = "red"
        document["index"]["colour"], document["generations"][0]["when"] = [], "today"

    ok(dataset_case, "ver-1-compatible.grain", "VER-1", "compatible bits, and then reserved bytes that are not zero",
       letters(3), segment={"header": compatible, "footer": compatible})
    ok(dataset_case, "man-2-unknown-members.grain", "MAN-2", "members that the page does not name", letters(3),
       manifest=members)
    ok(dataset_case, "man-5-white-space.grain", "MAN-5 MAN-1", "white space between the first tokens of the manifest",
       letters(2), text=respaced)
    ok(segment_case, "met-1-unknown-members.seg", "MET-1", "members of METADATA that the page does not name", letters(2),
       shape=Shape(metadata=b' {"units":{"x":1},"user":{},"schema":{"fields":[{"type":"bytes","note":[],"name":"data"}],'
                            b'"attributes":[],"more":0}}\n'))
    ok(segment_case, "dir-2-ancillary.seg", "DIR-2", "sections of kinds that a reader ignores", letters(3),
       sections=lambda found: found.extend([[32768, 0, 0, b"x"], [32768, 7, 999, bytes(70000)], [65535, 65535, 3, b"yz"]]),
       directory=lambda found: found["records"][-1].__setitem__(6, 0xFFFFFFFF))
    deep = "[" * 1000 + "]" * 1000
    ok(segment_case, "met-3-user.seg", "MET-3", "user metadata that many programs cannot hold", letters(2),
       shape=Shape(user=f'{{"huge":1e999,"digits":{"7" * 5000},"deep":{deep}, "tiny":-1e-999,"plain":[1,"two"]}}'))
    ok(segment_case, "met-3-twice.seg", "CON-8 MET-3", "a member twice inside user", letters(2), shape=Shape(user='{"a":1,"a":2}'))
    opaque = {"o%d" % width: width for width in (1, 2, 4, 8, 16)}
    ok(segment_case, "atr-3-opaque.seg", "ATR-3", "attributes and fields of types of a later version",
       [Sample(b"\1\2\3\4", b"a", attributes={name: bytes(range(1, width + 1)) for name, width in opaque.items()},
               fields={"f": (0, 3), "g": (1, 2)}),
        Sample(b"\5", b"b", attributes={"o4": b"\xff\0\0\0"}, fields={"f": (0, 1)})],
       shape=Shape(attributes=[(name, "decimal<%d>" % width) for name, width in opaque.items()],
                   fields=[("f", "float8[,3]"), ("g", "float32[03]")], opaque=opaque))


def respaced(data):
    """The same manifest with other white space, and its crc32 again."""
    from layout import crc
    text = data[:-26].replace(b'{\n  "format": "grainstore",\n  "version": 0,',
                              b' \t\r\n{ "format"\n:\t"grainstore"\r,"version"   :  0 ,', 1)
    return text + b',\n  "crc32": "%08x"\n}\n' % crc(text)


def names_and_keys():
    names = ("größe \u202egnp.exe", "ordinal", "\"quoted\" \\", "n" * 255)
    ok(segment_case, "met-2-names.seg", "MET-2 KEY-1", "names and keys that a terminal must not see as they are",
       [Sample(b"%d" % i, key, attributes={name: i for name in names}) for i, key in
        enumerate(("\u202ecod.exe".encode(), b"../../etc/passwd", b"\x1b[2J", b"\xff\xfe", b"\0", b"a\nb"))],
       shape=Shape(attributes=[(name, "uint8") for name in names], fields=[("\u202edata", "str")]), absent_keys=["0000"])
    ok(segment_case, "key-1-lengths.seg", "KEY-1 KEY-7 CON-7", "keys of 1, 127, 128, 16383, 16384 and 65535 bytes",
       [Sample(b"%d" % n, b"k" * n) for n in (1, 127, 128, 16383, 16384, 65535)], absent_keys=["6b6b"])
    ok(segment_case, "key-2-1.seg", "KEY-2", "n = 1, one bucket", letters(1, keyed=True), absent_keys=["31"])
    for n in (33, 130, 1100):
        ok(segment_case, f"key-2-{n}.seg", "KEY-2 KEY-3 KEY-5", f"the key directory of {n} samples", letters(n, 1, True),
           absent_keys=[(b"%d" % (n + i)).hex() for i in range(40)])
    same = [b"00109e01", b"00db6ae1", b"0065adc2", b"00b3ea05", b"00035aa4", b"03c1d401"]
    for a, b in zip(same[::2], same[1::2]):
        assert xxh64(a, 7) >> 16 == xxh64(b, 7) >> 16
    ok(segment_case, "key-6-equal-hashes.seg", "KEY-6 KEY-4", "pairs of keys of the same hash48",
       [Sample(key, key) for key in same + [b"%d" % i for i in range(60)]], absent_keys=[b"00109e02".hex()])
    ok(segment_case, "key-1-keyless.seg", "KEY-1 DIR-3", "samples without keys", letters(5), absent_keys=["30"])


def chunks():
    edges = [0, 1, 4095, 4096, 4097, 3, 8191, 0, 12293, 5, 0, 700]
    for a in (0, 1, 2, 64, 512, 4096):
        ok(segment_case, f"smp-2-alignment-{a}.seg", "SMP-2 CHK-1 CHK-3", f"alignment {a}, samples of lengths around a chunk",
           [Sample(bytes([65 + i]) * n) for i, n in enumerate(edges)], shape=Shape(alignment=a))
    ok(segment_case, "chk-1-zero-length.seg", "CHK-1 SEG-2", "samples of no bytes, also at the start of a chunk",
       [Sample(), Sample(), Sample(b"a" * 4096), Sample(), Sample(b"b" * 4095), Sample(), Sample(b"c"), Sample(), Sample()])
    ok(segment_case, "chk-2-wide-counts.seg", "CHK-2", "CHUNKS wider than its largest count needs", letters(7),
       shape=Shape(count_width=8))
    ok(segment_case, "chk-2-counts-of-300.seg", "CHK-2", "a chunk that owns more than 255 samples",
       [Sample(b"%d" % (i % 10)) for i in range(300)])
    ok(segment_case, "chk-3-large-samples.seg", "CHK-3 PLN-2", "chunks in which no sample starts, samples of 8 chunks and more",
       [Sample(b"a" * 100), Sample(b"b" * 32767), Sample(b"c" * 32768), Sample(b"d"), Sample(b"e" * 40000)])


def compressed():
    parts = {"match": [(b"abcdefgh", 8, 60), (b"tail!",)], "overlap": [(b"x", 1, 300), (b"12345",)],
             "fold": [(b"\0", 1, 25000), (b"\0" * 5,)], "literals": [(bytes(range(256)) * 2, 256, 600), (b"the last",)],
             "no last literals": [(b"ab", 2, 50), (b"",)], "chain": [(b"abc", 3, 9), (b"", 1, 19), (b"Z", 5, 4), (b"q" * 20,)],
             "far": [(b"far" + b"-" * 5, 1, 65000), (b"", 65008, 8 + 4096), (b"end",)]}
    ok(segment_case, "con-4-lz4.seg", "CON-4 RAW-1 RAW-2 ENT-6", "LZ4 blocks: matches that overlap, long lengths, the largest "
       "distance but few, a last sequence without literals",
       [Sample(b"raw one", b"raw")] + [Sample(unlz4(one), name.encode(), block=lz4(*one)) for name, one in parts.items()],
       shape=Shape(attributes=LABEL))
    fold = [(b"\0", 1, 4 + 15 + 255 * 260), (b"",)]
    ok(dataset_case, "raw-2-255-fold.grain", "RAW-2", "a block that expands nearly 255-fold, in two segments",
       [Sample(unlz4(fold), block=lz4(*fold))], [Sample(b"raw"), Sample(unlz4(fold[:1]) + b"12345", block=lz4(fold[0], (b"12345",)))])


def columns():
    three = (("image", "bytes"), ("caption", "str"), ("boxes", "float32[2]"))
    rows = [{"image": (0, 5), "caption": (5, 3), "boxes": (8, 8)}, {"image": (0, 4)}, {"caption": (0, 0), "boxes": (2, 8)},
            {"image": (1, 9), "caption": (0, 10)}, {}]
    payloads = [b"", b"abcd", b"0123456789", b"overlapping", b"no field"]
    samples = [Sample(payload, fields=row) for i, (payload, row) in enumerate(zip(payloads, rows))]
    samples[0] = Sample(b"12345\xc3\xb6x" + struct.pack("<2f", 1, -2), fields=rows[0])
    ok(segment_case, "fld-1-columns.seg", "FLD-1 FLD-2 FLD-3", "three fields: missing ones, gaps and overlaps", samples,
       shape=Shape(fields=three))
    ok(dataset_case, "fld-2-wide-columns.grain", "FLD-2", "field columns of width 8 for small fields, in two segments",
       samples[:2], samples[2:], shape=Shape(fields=three, field_width=8))
    ok(segment_case, "fld-1-one-field.seg", "FLD-1", "one field with columns",
       [Sample(b"head|body", fields={"data": (5, 4)}), Sample(b"x")], shape=Shape(columns=True))
    packed = struct.pack("<8f", *range(8))
    arrays = {"list": (0, 12), "rows": (0, 32), "halves": (0, 8), "brains": (2, 6), "none": (0, 0), "empty": (0, 0)}
    ok(segment_case, "fld-4-arrays.seg", "FLD-4", "arrays: open first dimensions, 16-bit floats, a dimension of 0",
       [Sample(packed, fields=arrays), Sample(b"", fields={"list": (0, 0), "rows": (0, 0)})],
       shape=Shape(fields=(("list", "float32[]"), ("rows", "float32[,4]"), ("halves", "float16[2,2]"),
                           ("brains", "bfloat16[]"), ("none", "int64[]"), ("empty", "uint8[3,0]"))))


TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
         "float64", "timestamp", "category")


def typed_rows():
    signed = {f"int{bits}": (-2 ** (bits - 1), 2 ** (bits - 1) - 1, -1) for bits in (8, 16, 32, 64)}
    unsigned = {f"uint{bits}": (0, 2**bits - 1, 7) for bits in (8, 16, 32, 64)}
    rows = {"bool": (True, False, True), **signed, **unsigned, "float16": (-0.0, 65504.0, float("nan")),
            "bfloat16": (0x8000, 0x7F80, 0x3FC0), "float32": (-0.0, float("-inf"), 0.1), "float64": (1e308, 5e-324, -2.5),
            "timestamp": (-1, 1732233600000000000, 2**63 - 1), "category": ("zebra", "", "\u202eä\n")}
    return [{name: rows[name][i] for name in TYPES} for i in range(3)]


def attributes():
    rows = typed_rows()
    shape = Shape(attributes=[(name, name) for name in TYPES])
    full = [Sample(b"%d" % i, attributes=rows[i % 3]) for i in range(9)]
    ok(segment_case, "atr-1-types.seg", "ATR-1 CAT-1", "an attribute of every type", full, shape=shape)
    partly = [Sample(b"%d" % i, attributes={name: row for k, (name, row) in enumerate(rows[i % 3].items()) if (i + k) % 4})
              for i in range(9)]
    ok(segment_case, "atr-2-validity.seg", "ATR-2", "every type, each missing in some samples", partly, shape=shape)
    kinds = ("category", "int32", "float64")
    ok(segment_case, "cat-2-none.seg", "CAT-2 ATR-2", "attributes that no sample has", letters(3),
       shape=Shape(attributes=[(name, name) for name in kinds]))
    for width in (2, 4):
        ok(segment_case, f"cat-1-width-{width}.seg", "CAT-1", f"codes of width {width} for three categories",
           [Sample(b"", attributes={"c": name}) for name in ("a", "b", "a", "cc")] + [Sample()],
           shape=Shape(attributes=[("c", "category")], category_width=width))
    many = [Sample(attributes={"c": f"class {i % 300:03}"}) for i in range(310)]
    ok(segment_case, "cat-1-300-categories.seg", "CAT-1 CAT-3", "more categories than one byte counts", many,
       shape=Shape(attributes=[("c", "category")]))
    ok(segment_case, "cat-1-unused.seg", "CAT-3 CAT-1", "a category that no sample has, which a reader takes",
       [Sample(attributes={"c": "used"})], shape=Shape(attributes=[("c", "category")]),
       index=lambda index: index.attributes[0].categories.append("unused"))


def tar(members):
    """A tar archive (ustar) of (name, bytes); returns it and the samples, one for each member."""
    data, found, end = b"", [], 0
    for name, payload in members:
        header = bytearray(512)
        for at, text in (0, name), (100, b"0000644\0"), (108, b"0000000\0"), (116, b"0000000\0"), (124, b"%011o\0" % len(payload)), (
                136, b"00000000000\0"), (148, b"        "), (156, b"0"), (257, b"ustar\00000"):
            header[at:at + len(text)] = text
        header[148:156] = b"%06o\0 " % sum(header)
        data += bytes(header)
        found.append(Sample(payload, name, gap=len(data) - end))
        end = len(data) + len(payload)
        data += payload + bytes(-len(payload) % 512)
    return data + bytes(1024), found


def external():
    archive, members = tar([(b"a/1.txt", b"first member"), (b"a/2.txt", b""), (b"b.bin", bytes(range(256)) * 3)])
    plain = b"starts at offset 0, and ends after the last sample"
    parts = [Sample(plain[:6], b"one"), Sample(plain[11:17], b"two", gap=5)]
    path = "valid/ext-1-"
    ok(dataset_case, "ext-1-external.grain", "EXT-1 EXT-2 SEG-2 ENT-2", "an archive beside the dataset, and a file in it",
       External("../ext-1-archive.tar", members, archive), External("plain.bin", parts, plain), letters(2, keyed=True),
       beside={path + "archive.tar": archive, path + "external.grain/plain.bin": plain})
    ok(dataset_case, "ext-1-one-external.grain", "MAN-4 EXT-1", "the index of the only segment, which is external",
       External("plain.bin", parts, plain), beside={path + "one-external.grain/plain.bin": plain})
    ok(dataset_case, "ext-1-leads-out.grain", "EXT-1", "a path that leads out of the parent directory and back: read only where "
       "the user allows it", External("../../valid/ext-1-archive.tar", members, archive),
       options={"allow_external": True})
    zeros_crc, length = crc_of_zeros(2**31 + 5), 2**31 + 5
    long = [Sample(b"\0" * 9, b"short"), Sample(key=b"long", length=length, zeros_crc=zeros_crc), Sample(b"\0", b"last")]
    ok(dataset_case, "lng-1-long.grain", "LNG-1 ENT-3", "a sample of more than 2 GiB, in a file of zeros that the reader of the corpus "
       "makes (`sparse`)", External("zeros.bin", long, b"", length + 10), shape=Shape(log2=24), sparse={"lng-1-long.grain/zeros.bin": length + 10})


def crc_of_zeros(length):
    import zlib
    found, block = 0, bytes(1 << 24)
    for _ in range(length >> 24):
        found = zlib.crc32(block, found)
    return zlib.crc32(bytes(length % (1 << 24)), found)


def for_orders():
    """Datasets of more chunks, which orders.json uses."""
    def sample(i):
        size = (i * 7919) % 1500 + (33000 if i in (40, 170) else 0)
        row = {"label": i % 7 - 1, "width": i * 37 % 640, "split": ("train", "train", "val", "größe")[i // 3 % 4],
               "score": i / 8 - 9, "half": i / 16, "sharp": i % 3 == 0, "when": i * 10**16}
        for k, name in enumerate(("width", "split", "score")):
            if (i + k) % 11 == 0:
                del row[name]
        return Sample(bytes([i % 251]) * size, b"k/%03d" % i, attributes=row)

    kinds = (("label", "int16"), ("width", "uint32"), ("split", "category"), ("score", "float64"), ("half", "float16"),
             ("sharp", "bool"), ("when", "timestamp"))
    shape = Shape(attributes=kinds, user='{"class_names":["cat","dog","cat","größe",7]}')
    found = [sample(i) for i in range(200)]
    ok(dataset_case, "pln-2-extents.grain", "PLN-2 PLN-5", "200 samples in two generations, for orders and subsets",
       found[:90], found[90:160], found[160:], shape=shape, generations=[2, 3])
    ok(dataset_case, "pln-8-member.grain", "PLN-8", "a dataset that is read with pln-2-extents.grain as one",
       [Sample(b"%d" % i * 400, b"k/%03d" % (i * 9), attributes={"label": i % 3, "split": "test" if i % 2 else "val", "half": i / 4,
                                                              "sharp": True}) for i in range(40)],
       shape=Shape(log2=13, attributes=kinds, user=shape.user))
    ok(segment_case, "pln-8-other-classes.seg", "PLN-8", "a dataset of other class_names, which cannot be read with pln-2-extents.grain as one",
       found[:2], shape=Shape(attributes=kinds, user='{"class_names":["cat","dog"]}'))
    kinds = (("class", "int8"), ("fine", "uint32"), ("day", "timestamp"), ("label", "bool"), ("width", "int64"))
    for path, about, names in (("sub-8-names.seg", "numbers of an attribute other than label that have names", '"ant","größe","ant",1'),
                               ("pln-8-other-names.seg", "the same with other names, which cannot be read with it as one", '"ant","bee"')):
        user = '{"class_names":["cat"],"day_names":["monday"],"fine_names":[%s],"label_names":["no"],"width_names":"wide"}' % names
        ok(segment_case, path, "SUB-8 PLN-8", about,
           [Sample(b"%d" % i, b"%d" % i, attributes={"class": 0, "fine": i, "day": 0, "label": i % 2 == 0, "width": i}) for i in range(6)],
           shape=Shape(attributes=kinds, user=user))
    ok(segment_case, "pln-6-large.seg", "PLN-6", "a mean of more than 64 KiB a sample", [Sample(b"a" * 65000), Sample(b"b" * 66072)])


def make():
    for part in (files, room_to_grow, names_and_keys, chunks, compressed, columns, attributes, external, for_orders):
        part()
