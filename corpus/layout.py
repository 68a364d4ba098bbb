"""The structures of spec.md, written from the page alone: hashes, placement, index, segment, manifest.

A file is built in stages (`index`, `sections`, `directory`, `footer`, `header`, `bytes`). A case may change what one stage
made; the later stages, checksums included, are computed from the change. So a broken rule is broken alone.
"""

import json
import struct
import zlib

BLOCK, PAGE, LONG_MARK, MASK = 4096, 65536, 2**31 - 1, 2**64 - 1
(SEGMENTS, ENTRIES, CHUNKS, EDGES, LONG, RAW_LEN, KEYS, KEY_GROUPS, BUCKETS, SLOTS, METADATA, ATTRIBUTE, VALIDITY,
 FIELD_OFFSET, FIELD_LEN, FIELD_VALIDITY, CATEGORIES) = range(1, 18)
MAGIC = b"\x89GRAIN\r\n"
WIDTHS = {"bool": 1, "int8": 1, "int16": 2, "int32": 4, "int64": 8, "uint8": 1, "uint16": 2, "uint32": 4, "uint64": 8,
          "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "timestamp": 8}
FLOATS = {"float16": "e", "float32": "f", "float64": "d"}


# ---- hashes ---------------------------------------------------------------------------------------------------------

P1, P2, P3, P4, P5 = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579,
                      2870177450012600261)


def rotl(x, r):
    return ((x << r) | (x >> (64 - r))) & MASK


def step(acc, lane):
    return rotl((acc + lane * P2) & MASK, 31) * P1 & MASK


def xxh64(data, seed=0):
    """CON-3."""
    lanes, tail = len(data) // 32, len(data) % 32
    if lanes:
        accs = [(seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK]
        for words in struct.iter_unpack("<4Q", data[:32 * lanes]):
            accs = [step(acc, word) for acc, word in zip(accs, words)]
        h = sum(rotl(acc, r) for acc, r in zip(accs, (1, 7, 12, 18))) & MASK
        for acc in accs:
            h = ((h ^ step(0, acc)) * P1 + P4) & MASK
    else:
        h = (seed + P5) & MASK
    h = (h + len(data)) & MASK
    rest = data[len(data) - tail:]
    while len(rest) >= 8:
        h = (rotl(h ^ step(0, int.from_bytes(rest[:8], "little")), 27) * P1 + P4) & MASK
        rest = rest[8:]
    if len(rest) >= 4:
        h = (rotl(h ^ (int.from_bytes(rest[:4], "little") * P1 & MASK), 23) * P2 + P3) & MASK
        rest = rest[4:]
    for byte in rest:
        h = rotl(h ^ (byte * P5 & MASK), 11) * P1 & MASK
    h = (h ^ (h >> 33)) * P2 & MASK
    h = (h ^ (h >> 29)) * P3 & MASK
    return h ^ (h >> 32)


def crc(data):
    """CON-2."""
    return zlib.crc32(data)


def hex64(number):
    """CON-10: how a fingerprint is printed."""
    return f"{number:016x}"


def chain(links):
    """FPR-2, PLN-8: pairs (fingerprint, sample count) as one fingerprint."""
    found = 0
    for fingerprint, count in links:
        found = xxh64(struct.pack("<QQQ", found, fingerprint, count))
    return found


# ---- small parts ----------------------------------------------------------------------------------------------------

def up(x, a):
    """CON-5: round_up."""
    return (x + a - 1) // a * a


def varint(number):
    """CON-7."""
    found = bytearray()
    while number >= 128:
        found.append(number % 128 + 128)
        number //= 128
    return bytes(found) + bytes([number])


def bitmap(bits):
    """CON-6."""
    found = bytearray(up(len(bits), 8) // 8)
    for i, bit in enumerate(bits):
        found[i // 8] += bool(bit) * 2 ** (i % 8)
    return bytes(found)


def table(numbers, width):
    return b"".join(number.to_bytes(width, "little") for number in numbers)


def lz4(*sequences):
    """CON-4: one block of sequences (literals, distance, length of the match); the last one is literals only."""
    found = bytearray()
    for literals, *match in sequences:
        distance, length = match or (0, 4)
        counts = len(literals), length - 4
        found.append(min(counts[0], 15) * 16 + min(counts[1], 15))
        found += more(counts[0]) + literals
        if match:
            found += struct.pack("<H", distance) + more(counts[1])
    return bytes(found)


def more(count):
    """The bytes of an LZ4 length after its four bits."""
    return b"" if count < 15 else b"\xff" * ((count - 15) // 255) + bytes([(count - 15) % 255])


def unlz4(sequences):
    """What a block of these sequences decodes to."""
    found = bytearray()
    for literals, *match in sequences:
        found += literals
        for _ in range(match[1] if match else 0):
            found.append(found[-match[0]])
    return bytes(found)


# ---- what is packed -------------------------------------------------------------------------------------------------

class Sample:
    """A payload, and what is known of it. `block` is its LZ4 form, `gap` the bytes before it (external segments)."""

    def __init__(self, payload=b"", key=None, block=None, gap=0, attributes=None, fields=None, length=None, zeros_crc=0):
        self.payload, self.key, self.block, self.gap = payload, key, block, gap
        self.attributes, self.fields = attributes or {}, fields or {}
        self.stored = payload if block is None else block
        self.stored_len = len(self.stored) if length is None else length  # of a long sample, whose bytes are zeros
        self.raw_len = len(payload) if length is None else length
        self.crc = crc(self.stored) if length is None else zeros_crc


class Shape:
    """What the segments of a dataset have in common, and the widths that a writer may choose."""

    def __init__(self, log2=12, alignment=1, hash_seed=7, attributes=(), fields=(("data", "bytes"),), user="{}",
                 columns=None, field_width=None, count_width=None, category_width=None, opaque=None, metadata=None):
        self.log2, self.alignment, self.hash_seed, self.chunk = log2, alignment, hash_seed, 2**log2
        self.attributes, self.fields, self.user = attributes, fields, user
        self.columns = len(fields) > 1 if columns is None else columns
        self.field_width, self.count_width, self.category_width = field_width, count_width, category_width
        self.opaque, self.metadata = opaque or {}, metadata

    def metadata_text(self):
        if self.metadata is not None:
            return self.metadata
        named = [[{"name": name, "type": kind} for name, kind in columns] for columns in (self.attributes, self.fields)]
        schema = json.dumps({"attributes": named[0], "fields": named[1]}, ensure_ascii=False, separators=(",", ":"))
        return f'{{"schema":{schema},"user":{self.user}}}'.encode()


def value_bytes(kind, value, width):
    """ATR-1: the value as it is stored; an int is the bits of a bfloat16, bytes are those of an opaque type."""
    if isinstance(value, bytes):
        return value
    if kind in FLOATS:
        return struct.pack("<" + FLOATS[kind], value)
    return int(value).to_bytes(width, "little", signed=value < 0)


def place(samples, shape, external=False):
    """SMP-2: the offset of each sample, and data_end."""
    offsets, end = [], 0 if external else BLOCK
    for sample in samples:
        at = end + sample.gap
        if not external and shape.alignment:
            at = up(end, shape.alignment) + sample.gap
        elif not external and 1 <= sample.stored_len <= shape.chunk:
            if at // shape.chunk != (at + sample.stored_len - 1) // shape.chunk:
                at = up(at, shape.chunk)
        offsets.append(at)
        end = at + sample.stored_len
    return offsets, end


# ---- the index ------------------------------------------------------------------------------------------------------

class Column:
    """An attribute or a field as the index has it."""

    def __init__(self, width, values, validity, categories=None):
        self.width, self.values, self.validity, self.categories = width, values, validity, categories


class Index:
    """The contents of an index, each list as the page describes it. `segments` are pairs (samples, (offsets, end))."""

    def __init__(self, shape, segments):
        self.shape, self.samples = shape, [sample for samples, _ in segments for sample in samples]
        self.n = len(self.samples)
        self.segments = [[len(samples), end] for samples, (_, end) in segments]
        self.entries, self.counts, self.edges = [], [], []
        for s, (samples, (offsets, end)) in enumerate(segments):
            self.add_segment(s, samples, offsets, end)
        self.long = [[i, sample.stored_len] for i, sample in enumerate(self.samples) if sample.stored_len >= LONG_MARK]
        self.raw_len = [sample.raw_len if sample.block is not None else 0 for sample in self.samples]
        self.has_raw_len = any(sample.block is not None for sample in self.samples)
        self.keyed = self.samples[0].key is not None
        if self.keyed:
            self.add_keys()
        self.attributes = [self.attribute(i) for i in range(len(shape.attributes))]
        self.fields = [self.field(i) for i in range(len(shape.fields))] if shape.columns else []
        self.metadata, self.extra = shape.metadata_text(), []

    def add_segment(self, s, samples, offsets, end):
        """ENT, CHK-1, CHK-3."""
        chunk = self.shape.chunk
        owned = [[] for _ in range(max(1, -(-end // chunk)))]
        for sample, offset in zip(samples, offsets):
            word = min(sample.stored_len, LONG_MARK)
            self.entries.append([s, offset, sample.crc, sample.block is not None, word])
            owner = offset // chunk if sample.stored_len else (max(offset, 1) - 1) // chunk
            owned[owner].append(offset + sample.stored_len)
        self.counts += map(len, owned)
        self.edges += [bool(ends) and ends[-1] > (k + 1) * chunk for k, ends in enumerate(owned)]

    def add_keys(self):
        """KEY-2 to KEY-7."""
        d = max(0, (self.n - 1).bit_length() - 5)
        self.keys = [varint(len(sample.key)) + sample.key for sample in self.samples]
        ends = [0]
        for key in self.keys:
            ends.append(ends[-1] + len(key))
        self.groups = [ends[i] for i in range(0, self.n, 64)] + [ends[-1]]
        buckets = [[] for _ in range(2**d)]
        for i, sample in enumerate(self.samples):
            hash48 = xxh64(sample.key, self.shape.hash_seed) >> 16
            buckets[hash48 >> (48 - d)].append(hash48 % 2**(48 - d) * 2**(8 + d) + i)
        self.slots, self.buckets = [], [0]
        for bucket in buckets:
            self.slots += sorted(bucket)
            self.buckets.append(len(self.slots))

    def attribute(self, i):
        """ATR-1 to ATR-3, CAT-1 to CAT-3."""
        (name, kind), categories = self.shape.attributes[i], None
        values = [sample.attributes.get(name) for sample in self.samples]
        width = WIDTHS.get(kind) or self.shape.opaque.get(name)
        if kind == "category":
            categories = list(dict.fromkeys(value for value in values if value is not None))
            smallest = 1 if len(categories) <= 256 else 2 if len(categories) <= 65536 else 4
            width = self.shape.category_width or smallest
            values = [None if value is None else categories.index(value) for value in values]
        stored = [bytes(width) if value is None else value_bytes(kind, value, width) for value in values]
        return Column(width, stored, [value is not None for value in values], categories)

    def field(self, i):
        """FLD-1 to FLD-3."""
        ranges = [sample.fields.get(self.shape.fields[i][0]) for sample in self.samples]
        width = self.shape.field_width or 4
        return Column(width, [found or (0, 0) for found in ranges], [found is not None for found in ranges])

    def sections(self):
        """Section 6: lists [kind, item, width, data] in the order of DIR-2."""
        width = self.shape.count_width or next(w for w in (1, 2, 4, 8) if max(self.counts) < 256**w)
        words = [(s * 2**44 + offset, crc * 2**32 + lz4 * 2**31 + length) for s, offset, crc, lz4, length in self.entries]
        found = [[SEGMENTS, 0, 16, b"".join(struct.pack("<QQ", *record) for record in self.segments)],
                 [ENTRIES, 0, 16, b"".join(struct.pack("<QQ", *word) for word in words)],
                 [CHUNKS, 0, width, table(self.counts, width)], [EDGES, 0, 0, bitmap(self.edges)],
                 [LONG, 0, 16, b"".join(struct.pack("<QQ", *record) for record in self.long)],
                 [METADATA, 0, 0, self.metadata]]
        if self.has_raw_len:
            found.append([RAW_LEN, 0, 4, table(self.raw_len, 4)])
        if self.keyed:
            wide = 4 if self.n < 2**32 else 8
            found += [[KEYS, 0, 0, b"".join(self.keys)], [KEY_GROUPS, 0, 8, table(self.groups, 8)],
                      [BUCKETS, 0, wide, table(self.buckets, wide)], [SLOTS, 0, 7, table(self.slots, 7)]]
        for i, column in enumerate(self.attributes):
            found.append([ATTRIBUTE, i, column.width, b"".join(column.values)])
            found += [[VALIDITY, i, 0, bitmap(column.validity)]] * (not all(column.validity))
            names = (varint(len(name)) + name for name in map(encoded, column.categories or ()))
            found.append([CATEGORIES, i, 0, b"".join(names)])
        for i, column in enumerate(self.fields):
            for kind, which in (FIELD_OFFSET, 0), (FIELD_LEN, 1):
                found.append([kind, i, column.width, table([pair[which] for pair in column.values], column.width)])
            found += [[FIELD_VALIDITY, i, 0, bitmap(column.validity)]] * (not all(column.validity))
        return sorted((section for section in found + self.extra if section[3]), key=lambda section: section[:2])


def encoded(text):
    return text if isinstance(text, bytes) else text.encode()


# ---- files with a header and a footer -------------------------------------------------------------------------------

class Built:
    """A finished file: its bytes, the index in it, its fingerprint (FPR-1)."""

    def __init__(self, data, index, fingerprint):
        self.data, self.index, self.fingerprint = data, index, fingerprint


def build(shape, segments, kind=1, body=b"", **change):
    """A native segment (kind 1, body is what is between header and index) or an index file (kind 2)."""
    def changed(stage, value):
        if stage in change:
            change[stage](value)
        return value

    index = changed("index", Index(shape, segments))
    sections = changed("sections", index.sections())
    index_offset = BLOCK + up(len(body), BLOCK)
    records, storage, at = [], b"", index_offset
    for number, item, width, data in sections:
        checksums = table([crc(data[i:i + PAGE]) for i in range(0, len(data), PAGE)], 4)
        records.append([number, item, width, at, len(data), crc(checksums), 0])
        stored = data + bytes(up(len(data), 4) - len(data)) + checksums
        storage += stored + bytes(up(len(stored), BLOCK) - len(stored))
        at = index_offset + len(storage)
    sums = [sum(getattr(sample, name) for sample in index.samples) for name in ("stored_len", "raw_len")]
    directory = changed("directory", {
        "magic": b"GRAINDIR", "n": index.n, "segment_count": len(index.segments), "log2": shape.log2,
        "reserved": b"\0\0\0", "alignment": shape.alignment, "section_count": None, "hash_seed": shape.hash_seed,
        "stored_bytes": sums[0], "payload_bytes": sums[1], "edge_count": sum(index.edges), "records": records})
    packed_records = b"".join(struct.pack("<HHIQQII", *record) for record in directory.pop("records"))
    if directory["section_count"] is None:
        directory["section_count"] = len(packed_records) // 32
    packed = struct.pack("<8sQIB3sIIQQQQ", *directory.values()) + packed_records
    footer = changed("footer", {
        "magic": b"GRAINEND", "version": 0, "incompatible": 0, "compatible": 0, "directory_len": len(packed),
        "directory_offset": at, "index_offset": index_offset, "file_len": up(at + len(packed) + 64, BLOCK),
        "directory_crc": crc(packed), "reserved": bytes(8)})
    header = changed("header", {"magic": MAGIC, "version": 0, "incompatible": 0, "compatible": 0, "kind": kind,
                                "reserved": bytes(4071)})
    data = framed("<8sIIIB4071s", header) + body + bytes(up(len(body), BLOCK) - len(body)) + storage + packed
    data += bytes(up(len(data) + 64, BLOCK) - len(data) - 64) + framed("<8sIIIIQQQI8s", footer)
    return Built(bytes(changed("bytes", bytearray(data))), index, xxh64(packed))


def framed(layout, values):
    """HDR, FTR: a structure and the crc after it; a case may give the crc itself."""
    wrong = values.pop("crc", None)
    packed = struct.pack(layout, *values.values())
    return packed + struct.pack("<I", crc(packed) if wrong is None else wrong)


def native(shape, samples, **change):
    """FIL-2: a native segment."""
    offsets, end = place(samples, shape)
    if "offsets" in change:
        offsets, end = change.pop("offsets")
    body = bytearray(end - BLOCK)
    for sample, offset in zip(samples, offsets):
        body[offset - BLOCK:offset - BLOCK + sample.stored_len] = sample.stored
    return build(shape, [(samples, (offsets, end))], body=bytes(body), **change)


# ---- datasets -------------------------------------------------------------------------------------------------------

class External:
    """A segment of samples in a file that is not grainstore's. `path` is as in the manifest (EXT-1)."""

    def __init__(self, path, samples, data, file_len=None, **change):
        self.path, self.samples, self.data, self.change = path, samples, data, change
        self.file_len = len(data) if file_len is None else file_len  # longer: zeros that the tree does not hold


def data_fingerprint(segment):
    """EXT-2."""
    size = min(65536, segment.file_len)
    if segment.file_len > len(segment.data):
        first = last = bytes(size)
    else:
        first, last = segment.data[:size], segment.data[segment.file_len - size:]
    return xxh64(first + last + struct.pack("<Q", segment.file_len))


def manifest_text(document):
    """MAN-1: the JSON of a manifest with its tail."""
    text = json.dumps(document, indent=2, ensure_ascii=False).encode()[:-2]
    return text + b',\n  "crc32": "' + f"{crc(text):08x}".encode() + b'"\n}\n'


def dataset(shape, *segments, generations=None, names=None, manifest=None, text=None, merged=None, segment=None):
    """A dataset's directory: path -> bytes, and its merged index. Segments are lists of samples or External.

    `manifest` changes the document before its tail is made, `text` returns other bytes for the file; `merged` are the
    changes of the merged index, `segment` those of each native segment.
    """
    files, listed, placed = {}, [], []
    for s, part in enumerate(segments):
        external = isinstance(part, External)
        samples = part.samples if external else part
        where = place(samples, shape, external)
        if external:
            built = build(shape, [(samples, where)], kind=2, **part.change)
            files[f"{s:05}.idx"] = built.data
            listed.append({"kind": "external", "path": part.path, "file_len": part.file_len,
                           "sample_count": len(samples), "fingerprint": hex64(built.fingerprint),
                           "index_file": f"{s:05}.idx", "data_fingerprint": hex64(data_fingerprint(part)),
                           "modified_ns": 1732233600000000000})
        else:
            built = native(shape, samples, **(segment or {}))
            name = names[s] if names else f"{s:05}.seg"
            files[name] = built.data
            listed.append({"kind": "native", "path": name, "file_len": len(built.data), "sample_count": len(samples),
                           "fingerprint": hex64(built.fingerprint)})
        placed.append((samples, where))
    links = [(int(one["fingerprint"], 16), one["sample_count"]) for one in listed]
    states = [{"segment_count": count, "sample_count": sum(link[1] for link in links[:count]),
               "fingerprint": hex64(chain(links[:count]))} for count in generations or [len(segments)]]
    if len(segments) > 1 or merged is not None:
        built = build(shape, placed, kind=2, **(merged or {}))
        index_name = f"index-{hex64(chain(links))}.idx"
        files[index_name] = built.data
    else:
        index_name = listed[0].get("index_file", listed[0]["path"])
    document = {"format": "grainstore", "version": 0, "incompatible_features": 0, "compatible_features": 0,
                "index": {"file": index_name, "fingerprint": hex64(built.fingerprint)}, "segments": listed,
                "generations": [dict(state) for state in states]}
    if manifest:
        manifest(document)
    data = manifest_text(document)
    files["manifest.json"] = text(data) if text else data
    return files, built.index, states
