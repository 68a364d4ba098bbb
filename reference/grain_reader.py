#!/usr/bin/env python3
"""A reader of grainstore files, version 0, in the standard library alone.

It is meant to be read beside spec.md by an author of a reader in another language: it goes the same way through
the files, and the docstrings name the rules that a function carries out. It checks all that a right answer depends
on, when it is used, and raises GrainError with a sentence where a rule is broken. It does not look for what is
merely untidy, holds the sections that it uses in memory, and is not fast.
"""

import argparse
import bisect
import collections
import fractions
import functools
import io
import itertools
import json
import math
import operator
import os
import re
import stat
import struct
import sys
import zlib

VERSION, BLOCK, PIECE, LONG_MARK, MASK, WINDOW = 0, 4096, 65536, 2**31 - 1, 2**64 - 1, 256 << 20
(SEGMENTS, ENTRIES, CHUNKS, EDGES, LONG, RAW_LEN, KEYS, KEY_GROUPS, BUCKETS, SLOTS, METADATA, ATTRIBUTE, VALIDITY,
 FIELD_OFFSET, FIELD_LEN, FIELD_VALIDITY, CATEGORIES) = range(1, 18)
ANCILLARY, METADATA_MAX, CATEGORIES_MAX = 32768, 64 << 20, 64 << 20  # DIR-2, DIR-5, CAT-1
ATTRIBUTE_TYPES = {"bool": "<?", "int8": "<b", "int16": "<h", "int32": "<i", "int64": "<q", "uint8": "<B",
                   "uint16": "<H", "uint32": "<I", "uint64": "<Q", "float16": "<e", "bfloat16": "<2x", "float32": "<f",
                   "float64": "<d", "timestamp": "<q"}  # ATR-1; and category
STATE = {"grainstore_state": int, "fingerprint": str, "subset": str, "seed": int, "epoch": int, "order": str,
         "lanes": int, "group": range(1, 1 << 32), "mixture": type(None), "position": int}  # STA-1
STATE_LEN_MAX = 1 << 20  # STA-1
TAILS = ("drop", "short", "pad")
LANE_COUNTS = (768, 384, 192, 96, 48, 24, 12, 6, 3, 2, 1)


class GrainError(Exception):
    """Something is broken; the message is a sentence."""


class NotPossible(GrainError):
    """Nothing is known to be broken: absent files, newer versions, wrong arguments."""


class Newer(NotPossible):
    """VER-1: a file of another version; it may be whole."""


def require(condition, sentence):
    if not condition:
        raise GrainError(sentence)


def round_up(x, a):
    """CON-5."""
    return -(-x // a) * a


def check_crc(data, crc, what):
    """CON-2."""
    require(zlib.crc32(data) == crc, f"{what} is damaged: its checksum does not match.")


# ---- hashes and LZ4 ---------------------------------------------------------------------------------------------

P1, P2, P3, P4, P5 = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                      0x27D4EB2F165667C5)


def rotate(x, bits):
    return (x << bits | x >> (64 - bits)) & MASK


def xxh_round(lane, word):
    return rotate((lane + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data, seed):
    """CON-3: XXH64."""
    at = len(data) // 32 * 32
    h = (seed + P5) & MASK
    if at:
        a, b, c, d = (seed + P1 + P2) & MASK, (seed + P2) & MASK, seed, (seed - P1) & MASK
        for w, x, y, z in struct.iter_unpack("<4Q", data[:at]):
            a, b, c, d = xxh_round(a, w), xxh_round(b, x), xxh_round(c, y), xxh_round(d, z)
        h = (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) & MASK
        for lane in (a, b, c, d):
            h = ((h ^ xxh_round(0, lane)) * P1 + P4) & MASK
    h = (h + len(data)) & MASK
    while at + 8 <= len(data):
        h = (rotate(h ^ xxh_round(0, int.from_bytes(data[at:at + 8], "little")), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= len(data):
        h = (rotate(h ^ int.from_bytes(data[at:at + 4], "little") * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        h = rotate(h ^ byte * P5 & MASK, 11) * P1 & MASK
    h = (h ^ h >> 33) * P2 & MASK
    h = (h ^ h >> 29) * P3 & MASK
    return h ^ h >> 32


def lz4_decode(data, raw_len):
    """CON-4, RAW-2: one LZ4 block, which has to yield exactly raw_len bytes."""
    out, at = bytearray(), 0

    def length(bits):
        """After four bits that are all ones, bytes are added up to the first that is not 255."""
        nonlocal at
        more = bits == 15
        while more:
            bits, more, at = bits + data[at], data[at] == 255, at + 1
        return bits

    try:
        while True:
            token, at = data[at], at + 1
            literals = length(token >> 4)
            out += data[at:at + literals]
            at += literals
            if at >= len(data):  # the last sequence has literals only
                require(at == len(data) and len(out) == raw_len, "An LZ4 block does not yield its raw length.")
                return bytes(out)
            distance, at = data[at] | data[at + 1] << 8, at + 2
            match = length(token & 15) + 4
            require(0 < distance <= len(out), "An LZ4 block refers to bytes before its start.")
            require(len(out) + match <= raw_len, "An LZ4 block yields more than its raw length.")
            source = out[-distance:][:match]  # shorter than the match where that repeats itself
            out += (source * (match // len(source) + 1))[:match]
    except IndexError:
        raise GrainError("An LZ4 block ends too early.") from None


# ---- files, JSON, versions --------------------------------------------------------------------------------------

class ByteFile:
    """A regular file that is read by offset; every read is compared with its length first."""

    def __init__(self, path):
        self.name = os.fsdecode(path)
        try:
            require(stat.S_ISREG(os.stat(path).st_mode), f"{self.name} is not a regular file.")
            self.file = io.open(path, "rb")
            self.length = os.fstat(self.file.fileno()).st_size
        except (OSError, ValueError) as error:
            raise NotPossible(f"A file cannot be opened: {error}.") from None

    def read(self, offset, length):
        require(offset + length <= self.length,
                f"{self.name} is damaged or cut short: it has no bytes {offset} to {offset + length}.")
        try:
            self.file.seek(offset)
            data = self.file.read(length)
        except OSError as error:
            raise GrainError(f"{self.name} cannot be read: {error}.") from None
        require(len(data) == length, f"{self.name} became shorter while it was read.")
        return data


def check_newer(version, incompatible, what):
    """VER-1, VER-2."""
    if version > VERSION or incompatible:
        raise Newer(f"{what} was written by a newer grainstore: it has version {version} and incompatible "
                    f"feature bits {incompatible:#x}; this reader knows version {VERSION} and no such bit.")


class Json:
    """CON-8, MAN-2: a parser that builds the members it is asked for, and skips others, whatever they hold."""

    TOKEN = re.compile(r"""[ \t\n\r]*("(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"|[][{}:,]|true|false|null
                       |-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)""", re.VERBOSE)
    CLOSERS = {"{": "}", "[": "]"}

    def __init__(self, text, what):
        self.text, self.what, self.at = text, what, 0

    @classmethod
    def read(cls, data, shape, what):
        """A whole document of this shape."""
        try:
            parser = cls(data.decode("utf-8"), what)
        except UnicodeDecodeError as error:
            raise GrainError(f"{what} is not JSON: {error}.") from None
        value = parser.value(shape, what)
        require(not parser.text[parser.at:].strip(" \t\n\r"), f"{what} is not JSON: more follows its end.")
        return value

    def token(self):
        found = self.TOKEN.match(self.text, self.at)
        require(found, f"{self.what} is not JSON: at character {self.at}.")
        self.start, self.at = found.start(1), found.end()
        return found[1]

    def take(self, wanted):
        """Whether the next token is this one; only then it is used up."""
        at = self.at
        if self.token() == wanted:
            return True
        self.at = at
        return False

    def expect(self, wanted):
        require(self.take(wanted), f"{self.what} is not JSON: there is no {wanted} at character {self.at}.")

    def string(self, what):
        token = self.token()
        require(token[0] == '"', f"{what} is not a string.")
        value = json.loads(token)
        require(not re.search("[\ud800-\udfff]", value), f"{what} has half a surrogate pair.")
        return value

    def skip(self):
        """A value of any depth, as text."""
        open_, first = [], None
        while True:
            token = self.token()
            first = self.start if first is None else first
            require(token not in "]}:,", f"{self.what} is not JSON: {token} at character {self.start}.")
            if token in self.CLOSERS and not self.take(self.CLOSERS[token]):
                open_.append(self.CLOSERS[token])
                self.skip_name(open_[-1])
                continue
            while open_:
                if self.take(","):
                    self.skip_name(open_[-1])
                    break
                self.expect(open_.pop())
            else:
                return self.text[first:self.at]

    def skip_name(self, closer):
        if closer == "}":
            require(self.token()[0] == '"', f"{self.what} is not JSON: a member has no name.")
            self.expect(":")

    def value(self, shape, what):
        """A value of a shape: str, a range of integers, dict (any object, as text), or a list or an object of shapes."""
        if shape is str:
            return self.string(what)
        if isinstance(shape, range):
            token = self.token()
            require(re.fullmatch("-?[0-9]+", token) and token != "-0" and len(token) <= 20 and int(token) in shape,
                    f"{what} is not an integer from {shape.start} to {shape.stop - 1}.")
            return int(token)
        if shape is dict:
            text = self.skip()
            require(text[0] == "{", f"{what} is not an object.")
            return text
        return self.list(shape[0], what) if isinstance(shape, list) else self.object(shape, what)

    def list(self, shape, what):
        self.expect("[")
        found = []
        while found or not self.take("]"):
            found.append(self.value(shape, what))
            if not self.take(","):
                self.expect("]")
                break
        return found

    def object(self, shape, what):
        """MAN-2: members whose names end with `?` in the shape may be absent."""
        self.expect("{")
        found, more = {}, not self.take("}")
        while more:
            name = self.string(f"{what}: the name of a member")
            self.expect(":")
            of_member = None if name.endswith("?") else shape.get(name, shape.get(name + "?"))
            if of_member is None:
                self.skip()
            else:
                require(name not in found, f"{what} has {name} twice.")
                found[name] = self.value(of_member, f"{what}: {name}")
            more = self.take(",")
            if not more:
                self.expect("}")
        absent = [name for name in shape if name[-1] != "?" and name not in found]
        require(not absent, f"{what} lacks {', '.join(absent)}.")
        return found


def member(text, name):
    """MET-3: a member of the user's metadata; None where there is none. A value that Python cannot hold is an error."""
    parser, found = Json(text, "The user's metadata"), None
    parser.expect("{")
    more = not parser.take("}")
    while more:
        here = json.loads(parser.token()) == name
        parser.expect(":")
        value = parser.skip()
        found, more = value if here else found, parser.take(",")
    def real(digits):
        if math.isinf(float(digits)):
            raise ValueError(f"{digits} is too large")
        return float(digits)

    try:
        return None if found is None else json.loads(found, parse_float=real)
    except (ValueError, RecursionError) as error:
        raise NotPossible(f"Python cannot hold {name} of the user's metadata: {error} (MET-3).") from None


def check_shape(value, shape, what):
    """Refuse JSON that does not look like shape: a type, a range of integers, or a list or an object of shapes."""
    if isinstance(shape, range):
        require(type(value) is int and value in shape, f"{what} is not a number from {shape.start} to {shape.stop - 1}.")
        return
    require(type(value) is (shape if isinstance(shape, type) else type(shape)), f"{what} is of the wrong type.")
    if isinstance(shape, dict):
        require(value.keys() == shape.keys(), f"{what} has wrong members.")
        for name in shape:
            check_shape(value[name], shape[name], f"{what}: {name}")
    elif isinstance(shape, list):
        for element in value:
            check_shape(element, shape[0], what)
    elif shape is int:
        require(0 <= value <= MASK, f"{what} is not an unsigned number of 64 bits.")


# ---- the index: header, footer, directory, sections -------------------------------------------------------------

Entry = collections.namedtuple("Entry", "segment offset stored_len raw_len lz4 crc")


class Section:
    """A section of the index, loaded whole when it is first used."""

    def __init__(self, file, kind, item, width, offset, length, checksums_crc, reserved):
        self.kind, self.item, self.reserved = kind, item, reserved
        self.file, self.width, self.offset, self.len, self.checksums_crc = file, width, offset, length, checksums_crc
        self.name = f"{file.name}: section {kind}[{item}]"
        self.end = offset + round_up(length, 4) + 4 * -(-length // PIECE)  # DIR-4

    @functools.cached_property
    def data(self):
        """DIR-6: nothing of a section is used before its list of checksums, and each piece by that, were checked."""
        stored = self.file.read(self.offset, self.end - self.offset)
        checksums = stored[round_up(self.len, 4):]
        check_crc(checksums, self.checksums_crc, f"{self.name}: the list of checksums")
        for k, (crc,) in enumerate(struct.iter_unpack("<I", checksums)):
            check_crc(stored[k * PIECE:min(self.len, (k + 1) * PIECE)], crc, f"{self.name}: piece {k}")
        return stored[:self.len]

    def read(self, offset, length):
        require(0 <= offset and 0 <= length and offset + length <= self.len,
                f"{self.name} is damaged: it has no bytes {offset} to {offset + length}.")
        return self.data[offset:offset + length]

    def number(self, i):
        return int.from_bytes(self.read(i * self.width, self.width), "little")


def read_varint(data, at, what):
    """CON-7, of three bytes at most: the number, and where it ends."""
    number = shift = 0
    more = True
    while more:
        require(at < len(data) and shift < 21, f"{what}: a length (KEY-1, CAT-1).")
        number, more = number | (data[at] & 127) << shift, data[at] >= 128
        at, shift = at + 1, shift + 7
    require(shift == 7 or data[at - 1], f"{what}: a length of too many bytes (CON-7).")
    return number, at


def attribute_widths(name):
    """ATR-1, ATR-3, CAT-1: the widths that section ATTRIBUTE may have for a type."""
    if name in ATTRIBUTE_TYPES:
        return [struct.calcsize(ATTRIBUTE_TYPES[name])]
    return [1, 2, 4] if name == "category" else [1, 2, 4, 8, 16]


def array_fits(name, length):
    """FLD-4: whether a field of the type of that name may have a length; any, where the type is no array."""
    parts = re.fullmatch(r"(u?int8|u?int16|u?int32|u?int64|b?float16|float32|float64)\[([0-9,]*)]", name)
    dimensions = parts[2].split(",") if parts else []
    opened = dimensions[:1] == [""]
    fixed = dimensions[opened:]
    if not parts or len(dimensions) > 8 or not all(re.fullmatch("0|[1-9][0-9]*", text) for text in fixed):
        return True
    product = math.prod(map(int, fixed))
    if product >= 1 << 40 or any(int(text) >= 1 << 40 for text in fixed) or opened and product == 0:
        return True  # another spelling of no type that is known
    elements, rest = divmod(length, struct.calcsize(ATTRIBUTE_TYPES[parts[1]]))
    return rest == 0 and (elements % product == 0 if opened else elements == product)


def read_frame(file, offset, length, magic):
    """HDR-1, FTR-1: header and footer begin with magic, version and features, and end with a checksum."""
    data = file.read(offset, length)
    require(data[:8] == magic, f"{file.name} is cut short, or not a grainstore file.")
    version, incompatible = struct.unpack_from("<II", data, 8)
    check_newer(version, 0, file.name)
    check_crc(data[:-4], int.from_bytes(data[-4:], "little"), f"{file.name}: the header or footer")
    check_newer(version, incompatible, file.name)
    return data


def read_footer(file):
    """Section 4, FTR-1, FTR-2: the directory's bytes, where it is, and where the index begins."""
    data = read_frame(file, file.length - 64, 64, b"GRAINEND")
    length, offset, index_offset, file_len, crc = struct.unpack_from("<IQQQI", data, 20)
    require(any(data[16:20]) or not any(data[52:60]), f"{file.name}: the footer is damaged: reserved bytes.")
    require(file_len == file.length, f"{file.name} was cut short or appended to: it had {file_len} bytes.")
    directory = file.read(offset, length)
    check_crc(directory, crc, f"{file.name}: the directory")
    require(length >= 64 and file_len == round_up(offset + length + 64, BLOCK),
            f"{file.name}: the footer is damaged: the directory is misplaced (FTR-2).")
    return directory, offset, index_offset


def fingerprint(directory):
    """FPR-1"""
    return f"{xxh64(directory, 0):016x}"


class Index:
    """What a native segment or an index file stores about its samples."""

    def __init__(self, path):
        self.file = ByteFile(path)
        self.name = self.file.name
        self.read_header()
        require(self.file.length >= 28672, f"{self.name} is cut short, or not a grainstore file (FIL-1).")
        directory, offset, self.index_offset = read_footer(self.file)
        self.fingerprint = fingerprint(directory)
        self.read_directory(directory, self.index_offset, offset)
        self.read_segments()
        self.read_metadata()
        self.check_sections()
        self.group, self.group_keys = None, []

    def read_header(self):
        """Section 3."""
        data = read_frame(self.file, 0, BLOCK, b"\x89GRAIN\r\n")
        require(data[20] in (1, 2), f"{self.name}: the header is damaged: its kind.")
        require(any(data[16:20]) or not any(data[21:4092]), f"{self.name}: the header is damaged: reserved bytes.")
        self.native = data[20] == 1

    def read_directory(self, data, place, directory_offset):
        """Section 5: DIR-1, DIR-2, DIR-4, DIR-5, HDR-2."""
        what = f"{self.name}: the directory is damaged"
        (magic, self.n, self.segment_count, log2, reserved, alignment, section_count, self.hash_seed, self.stored_bytes,
         self.payload_bytes, self.edge_count) = struct.unpack_from("<8sQIB3sIIQQQQ", data)
        require(magic == b"GRAINDIR" and len(data) == 64 + 32 * section_count, f"{what}: magic or length (DIR-1).")
        require(not any(reserved), f"{what}: reserved bytes.")
        require(self.native or place == BLOCK, f"{self.name}: an index file has bytes before its index (FTR-4).")
        require(12 <= log2 <= 30 and alignment in [0] + [1 << i for i in range(13)], f"{what}: chunk size or alignment.")
        self.sections, before, self.chunk_size = {}, (0, PIECE), 1 << log2
        for record in struct.iter_unpack("<HHIQQII", data[64:]):
            section = Section(self.file, *record)
            if record[0] == 0 or CATEGORIES < record[0] < ANCILLARY:
                raise Newer(f"{self.name} was written by a newer grainstore: {section.name} is unknown (DIR-2).")
            require(before < record[:2], f"{what}: {section.name} is out of order (DIR-2).")
            require(section.offset == place and section.len, f"{what}: {section.name} is misplaced or empty (DIR-4).")
            place, before = round_up(section.end, BLOCK), record[:2]
            if before < (ANCILLARY, 0):
                self.sections[before] = section
        require(place == directory_offset, f"{what}: it is misplaced (DIR-4).")
        for kind, count in (SEGMENTS, self.segment_count), (ENTRIES, self.n):
            require(self.section(kind).len == 16 * count > 0, f"{what}: the length of section {kind} (DIR-5).")
        self.keyed, self.bucket_bits = (KEYS, 0) in self.sections, max(0, (self.n - 1).bit_length() - 5)  # d of KEY-2

    def section(self, kind, item=0):
        """DIR-3."""
        require((kind, item) in self.sections, f"{self.name} is damaged: it has no section {kind}[{item}] (DIR-3).")
        return self.sections[kind, item]

    def check_sections(self):
        """DIR-3, DIR-5, FLD-1, FLD-2: which sections are there, their widths and lengths: the table of section 6."""
        n, chunks = self.n, self.chunk_starts[-1]
        attributes, fields = len(self.schema["attributes"]), len(self.schema["fields"])
        for kind in (SEGMENTS, ENTRIES, CHUNKS, EDGES, METADATA):
            self.section(kind)
        keys = {(kind, 0) in self.sections for kind in (KEYS, KEY_GROUPS, BUCKETS, SLOTS)}
        require(len(keys) == 1, f"{self.name} is damaged: it has only some of the sections of keys (DIR-3).")
        for i, column in enumerate(self.schema["attributes"]):
            require(self.section(ATTRIBUTE, i).width in attribute_widths(column["type"]),
                    f"{self.name} is damaged: the width of attribute {i} is not its type's (ATR-1, ATR-3, CAT-1).")
            require((CATEGORIES, i) not in self.sections or column["type"] == "category",
                    f"{self.name} is damaged: attribute {i} is no category, and has categories (CAT-1).")
        columns = [(kind, i) for kind in (FIELD_OFFSET, FIELD_LEN) for i in range(fields)]
        if fields > 1 or any(kind in (FIELD_OFFSET, FIELD_LEN, FIELD_VALIDITY) for kind, _ in self.sections):
            require(len({self.section(*column).width for column in columns}) == 1,
                    f"{self.name} is damaged: columns of fields have two widths (FLD-2).")
        bits, items = (0,), {ATTRIBUTE: attributes, VALIDITY: attributes, CATEGORIES: attributes,
                             **dict.fromkeys((FIELD_OFFSET, FIELD_LEN, FIELD_VALIDITY), fields)}
        table = {SEGMENTS: ((16,), self.segment_count), ENTRIES: ((16,), n), CHUNKS: ((1, 2, 4, 8), chunks),
                 EDGES: (bits, chunks), LONG: ((16,), None), RAW_LEN: ((4,), n), KEYS: (bits, None),
                 KEY_GROUPS: ((8,), -(-n // 64) + 1), BUCKETS: ((4 if n < 1 << 32 else 8,), (1 << self.bucket_bits) + 1),
                 SLOTS: ((7,), n), METADATA: (bits, None), ATTRIBUTE: ((1, 2, 4, 8, 16), n), VALIDITY: (bits, n),
                 FIELD_OFFSET: ((4, 8), n), FIELD_LEN: ((4, 8), n), FIELD_VALIDITY: (bits, n), CATEGORIES: (bits, None)}
        for section in self.sections.values():
            widths, count = table[section.kind]
            due = section.len if count is None else section.width * count or -(-count // 8)
            right = section.width in widths and section.len == due and section.len % (section.width or 1) == 0
            require(right and section.item < items.get(section.kind, 1) and not section.reserved,
                    f"{section.name} is damaged: its item, width, length or reserved bytes (DIR-5).")

    def read_segments(self):
        """SEG-1, SEG-3, FIL-2."""
        self.starts, self.data_ends, self.chunk_starts = [0], [], [0]
        for count, data_end in struct.iter_unpack("<QQ", self.section(SEGMENTS).data):
            self.starts.append(self.starts[-1] + count)
            self.data_ends.append(data_end)
            self.chunk_starts.append(self.chunk_starts[-1] + max(1, -(-data_end // self.chunk_size)))
        require(self.starts[-1] == self.n and (self.segment_count == 1 or not self.native),
                f"{self.name}: section SEGMENTS is damaged: the counts do not add up (SEG-1, FIL-2).")
        require(max(self.data_ends) <= 1 << 44, f"{self.name}: section SEGMENTS is damaged: the data's end (SEG-3).")
        require(not self.native or self.index_offset == round_up(max(self.data_ends[0], BLOCK), BLOCK),
                f"{self.name}: section SEGMENTS is damaged: the data's end (SEG-2).")

    def read_metadata(self):
        """MET-1 to MET-3, ATR-1."""
        what, section, column = f"{self.name}: METADATA", self.section(METADATA), {"name": str, "type": str}
        require(section.len <= METADATA_MAX, f"{what} is longer than {METADATA_MAX} bytes (DIR-5).")
        document = Json.read(section.data, {"schema": {"attributes": [column], "fields": [column]}, "user": dict}, what)
        self.schema, self.user = document["schema"], document["user"]
        attributes, fields = self.schema["attributes"], self.schema["fields"]
        names = {column["name"] for column in attributes + fields}
        require(fields and len(names) == len(attributes) + len(fields), f"{what}: a name is there twice (MET-2).")
        require(max(len(attributes), len(fields)) <= 1024, f"{what}: more than 1024 attributes or fields (MET-2).")
        for text in [*names, *(column["type"] for column in attributes + fields)]:
            require(1 <= len(text.encode("utf-8", "replace")) <= 255 and not re.search("[\0-\x1f\x7f-\x9f]", text),
                    f"{what}: {text!a} is no name or type (MET-2, ATR-3).")

    def entry(self, ordinal):
        """ENT-1 to ENT-3, ENT-6, SEG-2, RAW-1, RAW-2."""
        word0, word1 = struct.unpack("<QQ", self.section(ENTRIES).read(16 * ordinal, 16))
        segment, offset = word0 >> 44, word0 & (1 << 44) - 1
        crc, lz4, stored_len = word1 >> 32, word1 >> 31 & 1, word1 & LONG_MARK
        what = f"{self.name}: the entry of sample {ordinal} is damaged"
        require(segment == bisect.bisect_right(self.starts, ordinal) - 1, f"{what}: segment {segment} (ENT-1).")
        require(not lz4 or 1 <= stored_len < LONG_MARK, f"{what}: LZ4, and long or empty (ENT-6).")
        if stored_len == LONG_MARK:
            stored_len = self.long_len(ordinal)
        require(offset + stored_len <= self.data_ends[segment], f"{what}: it ends past its segment's data (SEG-2).")
        raw_len = stored_len
        if lz4:
            raw_len = self.section(RAW_LEN).number(ordinal)
            require(1 <= raw_len <= min(64 << 20, 255 * stored_len), f"{what}: raw length {raw_len} (RAW-2).")
        return Entry(segment, offset, stored_len, raw_len, lz4, crc)

    def long_len(self, ordinal):
        """LNG-1."""
        table = self.section(LONG)
        for at in range(0, table.len, 16):
            found, stored_len = struct.unpack("<QQ", table.read(at, 16))
            if found == ordinal:
                require(stored_len >= LONG_MARK, f"{table.name} is damaged: sample {ordinal} is not long (LNG-1).")
                return stored_len
        raise GrainError(f"{table.name} is damaged: it lacks sample {ordinal} (LNG-1).")

    def key(self, ordinal):
        """The key of a sample, or None in a keyless dataset."""
        if self.keyed and self.group != ordinal // 64:
            self.group_keys, self.group = self.read_key_group(ordinal // 64), ordinal // 64
        return self.group_keys[ordinal % 64] if self.keyed else None

    def read_key_group(self, group):
        """KEY-7, CON-7: the keys of ordinals 64 g to 64 g + 63."""
        begin, end = (self.section(KEY_GROUPS).number(g) for g in (group, group + 1))
        data, found, at = self.section(KEYS).read(begin, end - begin), [], 0
        while at < len(data):
            length, at = read_varint(data, at, f"{self.name}: KEYS is damaged")
            require(0 < length <= min(65535, len(data) - at), f"{self.name}: KEYS is damaged: a key's length (KEY-1).")
            found.append(data[at:at + length])
            at += length
        require(len(found) == min(64, self.n - 64 * group), f"{self.name}: KEYS is damaged: group {group} (KEY-7).")
        return found

    def find(self, key):
        """KEY-2 to KEY-6: the ordinal of a key, or None."""
        if not self.keyed:
            return None
        d, hash48 = self.bucket_bits, xxh64(key, self.hash_seed) >> 16
        bucket, rest = hash48 >> 48 - d, hash48 & (1 << 48 - d) - 1
        for i in range(self.section(BUCKETS).number(bucket), self.section(BUCKETS).number(bucket + 1)):
            slot = int.from_bytes(self.section(SLOTS).read(7 * i, 7), "little")
            ordinal = slot & (1 << 8 + d) - 1
            require(ordinal < self.n, f"{self.name}: SLOTS is damaged: it names sample {ordinal} (KEY-4).")
            if slot >> 8 + d == rest and self.key(ordinal) == key:
                return ordinal
        return None

    def has(self, kind, item, ordinal):
        """ATR-2, FLD-3, CON-6: without a bitmap all samples have it."""
        bitmap = self.sections.get((kind, item))
        return bitmap is None or bitmap.read(ordinal // 8, 1)[0] >> ordinal % 8 & 1

    def attributes(self, ordinal):
        """ATR-1, ATR-2: name -> value, None where the sample has not the attribute."""
        found = {}
        for i, column in enumerate(self.schema["attributes"]):
            section = self.section(ATTRIBUTE, i)
            data = section.read(section.width * ordinal, section.width)
            there = self.has(VALIDITY, i, ordinal)
            found[column["name"]] = self.attribute(i, column["type"], data) if there else None
        return found

    def attribute(self, i, name, data):
        """ATR-1, ATR-3, CAT-2: the value of attribute i of the type of that name. An unknown type: in hexadecimal."""
        what = self.section(ATTRIBUTE, i).name
        if name == "category":
            code, categories = int.from_bytes(data, "little"), self.categories(i)
            require(code < len(categories), f"{what} is damaged: there is no category {code} (CAT-2).")
            return categories[code]
        if name not in ATTRIBUTE_TYPES:
            return data.hex()
        require(name != "bool" or data[0] <= 1, f"{what} is damaged: a bool of {data[0]} (ATR-1).")
        value, = struct.unpack("<f", b"\0\0" + data) if name == "bfloat16" else struct.unpack(ATTRIBUTE_TYPES[name], data)
        return value

    @functools.cache
    def categories(self, i):
        """CAT-1: the categories of attribute i by their codes; none without the section."""
        if (CATEGORIES, i) not in self.sections:
            return []
        section, found, at = self.section(CATEGORIES, i), [], 0
        what = f"{section.name} is damaged"
        require(section.len <= CATEGORIES_MAX, f"{what}: it is longer than {CATEGORIES_MAX} bytes (CAT-1).")
        while at < section.len:
            length, at = read_varint(section.data, at, what)
            require(length <= min(65535, section.len - at), f"{what}: the length of category {len(found)} (CAT-1).")
            try:
                found.append(section.data[at:at + length].decode("utf-8"))
            except UnicodeDecodeError:
                raise GrainError(f"{what}: category {len(found)} is not UTF-8 (CAT-1).") from None
            at += length
        require(len(set(found)) == len(found) <= 1 << 20, f"{what}: too many categories, or one twice (CAT-1).")
        return found

    def fields(self, ordinal, payload):
        """FLD-1 to FLD-3: name -> bytes, None where the sample has not the field."""
        found, columns = {}, self.schema["fields"]
        for i, column in enumerate(columns):
            offset, length = 0, len(payload)
            if len(columns) > 1 or (FIELD_OFFSET, 0) in self.sections:
                offset, length = (self.section(kind, i).number(ordinal) for kind in (FIELD_OFFSET, FIELD_LEN))
            require(offset + length <= len(payload), f"{self.name}: a field of sample {ordinal} is outside it (FLD-2).")
            there = self.has(FIELD_VALIDITY, i, ordinal)
            found[column["name"]] = payload[offset:offset + length] if there else None
        return found


# ---- the manifest -----------------------------------------------------------------------------------------------

U32, U64 = range(1 << 32), range(1 << 64)
SEGMENT = {"kind": str, "path": str, "file_len": U64, "sample_count": U64, "fingerprint": str, "index_file?": str,
           "data_fingerprint?": str, "modified_ns?": range(-1 << 63, 1 << 63)}
MANIFEST = {"format": str, "version": U64, "incompatible_features": U32, "compatible_features": U32,
            "index": {"file": str, "fingerprint": str}, "segments": [SEGMENT],
            "generations": [{"segment_count": U64, "sample_count": U64, "fingerprint": str}]}
START = rb'\s*{\s*"format"\s*:\s*"grainstore"\s*,\s*"version"\s*:\s*(0|[1-9][0-9]*)\s*[,}]'.replace(rb"\s", b"[ \t\n\r]")


def read_manifest(path):
    """MAN-1 to MAN-3, MAN-5, EXT-1."""
    file = ByteFile(path)
    with file.file:
        what = file.name
        start = re.match(START, file.read(0, min(BLOCK, file.length)))
        require(start, f"{what} is not a manifest of grainstore (MAN-5).")
        check_newer(int(start[1][:20]), 0, what)
        data = file.read(0, file.length)
    require(re.fullmatch(rb',\n  "crc32": "[0-9a-f]{8}"\n}\n', data[-26:]), f"{what} is damaged: its end (MAN-1).")
    check_crc(data[:-26], int(data[-12:-4], 16), what)
    check_newer(VERSION, Json.read(data, {"incompatible_features": U32}, what)["incompatible_features"], what)
    document = Json.read(data, {**MANIFEST, "crc32": str}, what)
    check_path(document["index"]["file"], what)
    for segment in document["segments"]:
        external, own = segment["kind"] == "external", segment.keys() & {"index_file", "data_fingerprint", "modified_ns"}
        require(len(own) == 3 * external and (external or segment["kind"] == "native"),
                f"{what}: a segment has an unknown kind, or not the members of its kind (MAN-2).")
        check_path(segment["path"], what, external)
        check_path(segment["index_file"] if external else "-", what)
    check_generations(document, what)
    return document


def check_path(path, what, external=False):
    """MAN-3: a plain name. EXT-1: the path of an external segment may have parts, and begin with `..` or `/`."""
    parts = (re.sub(r"\A(/|(\.\./)+)", "", path) if external else path).split("/")
    legal = all(part not in ("", ".", "..") and not re.search("[\0\ud800-\udfff]", part) for part in parts)
    legal = legal and len(path.encode("utf-8", "replace")) <= (4096 if external else 255)
    require(legal and (external or len(parts) == 1), f"{what}: {path!a} is not a path that it may name (MAN-3, EXT-1).")


def leads_out(path):
    """EXT-4: whether a path leaves the dataset's parent directory, links not followed."""
    return path.startswith(("/", "../../"))


def check_generations(document, what):
    """GEN-1, FPR-2."""
    segments, count, samples, chained = document["segments"], 0, 0, f"{0:016x}"
    for generation in document["generations"]:
        require(count < generation["segment_count"] <= len(segments), f"{what}: a generation's segments (GEN-1).")
        for segment in segments[count:generation["segment_count"]]:
            chained = chain(chained, segment["fingerprint"], segment["sample_count"])
            samples += segment["sample_count"]
        count = generation["segment_count"]
        require((generation["sample_count"], generation["fingerprint"]) == (samples, chained),
                f"{what}: a generation does not match its segments (GEN-1, FPR-2).")
    require(1 <= count == len(segments), f"{what}: the last generation does not cover all segments (GEN-1).")


def chain(before, fingerprint, sample_count):
    """FPR-2: one step, from text to text as the manifest writes fingerprints."""
    require(re.fullmatch("[0-9a-f]{16}", fingerprint), f"{fingerprint!a} is not a fingerprint (MAN-2).")
    return f"{xxh64(struct.pack('<QQQ', int(before, 16), int(fingerprint, 16), sample_count), 0):016x}"


def opaque_widths(dataset):
    """PLN-8: bytes per value of each attribute, None where the type is known."""
    known = {*ATTRIBUTE_TYPES, "category"}
    return [None if column["type"] in known else dataset.index.section(ATTRIBUTE, i).width
            for i, column in enumerate(dataset.schema["attributes"])]


def names_member(dataset, attribute):
    """SUB-8: the member of the user's metadata that has the names of an integer attribute's numbers."""
    name = "class_names" if attribute == "label" else attribute + "_names"
    types = {column["name"]: column["type"] for column in dataset.schema["attributes"]}
    labelled = "label" in types and attribute != "label" and name == "class_names"
    return name if types[attribute] in ATTRIBUTE_TYPES and "int" in types[attribute] and not labelled else None


def names_of(dataset, attribute):
    """SUB-8: the names of an attribute's numbers; None where they have none."""
    name = names_member(dataset, attribute)
    names = name and member(dataset.user, name)
    return names if isinstance(names, list) else None


def all_names(dataset):
    """PLN-8: the names of all attributes by their members, and `class_names` as any JSON value."""
    found = {names_member(dataset, column["name"]): names_of(dataset, column["name"])
             for column in dataset.schema["attributes"]}
    return {**found, "class_names": member(dataset.user, "class_names")}


# ---- samples: what one dataset and several as one have in common ------------------------------------------------

class Samples:
    """Has n, fingerprint, stored_bytes, chunk_size, schema, keyed, member_extents(), key() and attributes()."""

    def __len__(self):
        return self.n

    def check(self, ordinal):
        if not 0 <= ordinal < self.n:
            raise NotPossible(f"There is no sample {ordinal}: the dataset has {self.n}.")
        return ordinal

    def order(self, name, seed=0, epoch=0, window=WINDOW, lanes=None, group=None, subset=None, weights=None,
              samples=None, state=None):
        """PLN-3 to PLN-11, STA-2: the order of an epoch of all samples, or of those whose ordinals are subset's, each as
        often as it is there; with weights, of as many of them as samples says, drawn. With a state, `auto`, absent lanes and an absent group are those of the state; the rest has to agree with it."""
        if not all(0 <= number <= MASK for number in (seed, epoch, window)):
            raise NotPossible("Seed, epoch and window are unsigned numbers of 64 bits.")
        chosen = range(self.n) if subset is None else sorted(map(self.check, subset))
        if not chosen:
            raise NotPossible("The subset has no samples; an epoch needs at least 1 (PLN-9).")
        hashed = None if subset is None else f"{subset_hash(chosen, self.n):016x}"
        k, drawn = key(seed, epoch, self.fingerprint), {}
        if weights is not None:
            integers = integer_weights(weights, len(chosen))
            samples = len(chosen) if samples is None else samples
            drawn = {"weights": f"{xxh64(struct.pack(f'<{len(integers)}Q', *integers), samples):016x}"}
            chosen = draw(integers, samples, chosen, k)
        state = None if state is None else read_state(state)
        if name == "auto":
            name = state["order"] if state else "full" if self.stored_bytes >= 65536 * self.n else "chunked"
        if lanes is None and state:
            lanes = state["lanes"]
        if group is None:
            group = state["group"] if state and state["group"] else 1
        n = len(chosen)
        if name == "chunked":
            lanes, place = self.chunked(chosen, k, window, lanes, group)
        else:
            lanes, group, place = None, None, full(n, k) if name == "full" else lambda position: position
        own = {"grainstore_state": 1, "fingerprint": f"{self.fingerprint:016x}", "subset": hashed, **drawn, "seed": seed,
               "epoch": epoch, "order": name, "lanes": lanes, "group": group, "mixture": None,
               "position": state["position"] if state else 0}
        if own["position"] > n:
            raise NotPossible(f"The state is at position {own['position']}: the epoch has {n} samples (STA-1).")
        for member in {**own, **state} if state else ():
            if state.get(member) != own.get(member):
                raise NotPossible(f"The state is of {member} {state.get(member)}, not {own.get(member)} (STA-2).")
        return Order(n, chosen, place, own)

    def chunked(self, chosen, k, window, lanes, group):
        """PLN-5, PLN-7, PLN-9: the number of lanes, and the function from position to index."""
        if not 1 <= group < 1 << 32:
            raise NotPossible(f"There can be 1 to 4294967295 extents in a group, not {group} (PLN-5).")
        members, n = self.member_extents(), len(chosen)
        units = []
        for unit in (extents[i:i + group] for extents in members for i in range(0, len(extents), group)):
            unit = [(bisect.bisect_left(chosen, a), bisect.bisect_left(chosen, b)) for a, b in unit]
            units.append([(low, min(low + 65536, b)) for a, b in unit for low in range(a, b, 65536)])
        units = [unit for unit in units if unit]
        if lanes is None:
            if window < self.chunk_size:
                raise NotPossible(f"A window has at least a chunk of {self.chunk_size} bytes, not {window} (PLN-7).")
            m = max(1, window // max(self.chunk_size, -(-self.stored_bytes // sum(map(len, members)))))
            lanes = next(count for count in LANE_COUNTS if count == 1 or count <= min(m, len(units) // 2))
        if not 1 <= lanes <= n:
            raise NotPossible(f"There can be 1 to {n} lanes, not {lanes} (PLN-5).")
        return lanes, chunked(n, k, units, lanes)


# ---- the dataset ------------------------------------------------------------------------------------------------

class Dataset(Samples):
    """A dataset's directory, one generation of it, or a lone native segment. Opened by open()."""

    def __init__(self, path, generation=None, allow_external=False):
        self.path, self.files, self.allow_external, self.notices = os.fspath(path), {}, allow_external, []
        if os.path.isdir(self.path):
            self.open_directory(generation)
        else:  # FIL-2, FPR-2
            self.segments, self.index, self.segment_count = [], Index(self.path), 1
            self.fingerprint = int(chain("0", self.index.fingerprint, self.index.n), 16)
            if not self.index.native or generation not in (None, 0):
                raise NotPossible(f"{self.path} is an index without samples, or has no generation {generation}.")
        self.schema, self.user, self.n = self.index.schema, self.index.user, self.index.starts[self.segment_count]
        self.chunk_size, self.keyed = self.index.chunk_size, self.index.keyed

    def open_directory(self, generation):
        """MAN-3, MAN-4, GEN-1."""
        path = os.path.join(self.path, "manifest.json")
        require(os.path.lexists(path), f"{self.path} is not a grainstore dataset: it has no manifest.json.")
        manifest = read_manifest(path)
        self.segments, generations = manifest["segments"], manifest["generations"]
        number = len(generations) - 1 if generation is None else generation
        if not 0 <= number < len(generations):
            raise NotPossible(f"{self.path} has generations 0 to {len(generations) - 1}, not {generation}.")
        self.segment_count = generations[number]["segment_count"]
        self.fingerprint = int(generations[number]["fingerprint"], 16)
        for segment in self.segments[:self.segment_count]:
            if segment["kind"] == "external" and leads_out(segment["path"]):
                self.require_leave(os.path.join(self.path, segment["path"]))
        own = [(one.get("index_file", one["path"]), one["fingerprint"]) for one in self.segments]
        require(len(own) > 1 or own == [(manifest["index"]["file"], manifest["index"]["fingerprint"])],
                f"{self.path}: the manifest names another index than that of its only segment (MAN-4).")
        self.index = Index(os.path.join(self.path, manifest["index"]["file"]))
        starts = [0, *itertools.accumulate(segment["sample_count"] for segment in self.segments)]
        require(self.index.fingerprint == manifest["index"]["fingerprint"] and self.index.starts == starts,
                f"{self.index.name} is not the index that the manifest names (MAN-3, MAN-4).")
        for segment, data_end in zip(self.segments, self.index.data_ends):
            begin, end = (0, data_end) if segment["kind"] == "external" else (BLOCK, round_up(data_end, BLOCK) + 2 * BLOCK)
            require(begin <= data_end and end <= segment["file_len"],
                    f"{self.index.name}: the data of {segment['path']!a} do not fit its file (SEG-2).")

    @functools.cached_property
    def stored_bytes(self):
        """Of the opened generation; the directory's sum counts the segments after it too (GEN-1)."""
        if self.n == self.index.n:
            return self.index.stored_bytes
        return sum(self.entry(i).stored_len for i in range(self.n))

    def entry(self, ordinal):
        """ENT-2: a native segment's samples are behind its header."""
        entry = self.index.entry(self.check(ordinal))
        native = not self.segments or self.segments[entry.segment]["kind"] == "native"
        require(entry.offset >= BLOCK or not native, f"The entry of sample {ordinal} is damaged: its offset (ENT-2).")
        return entry

    def key(self, ordinal):
        return self.index.key(self.check(ordinal))

    def attributes(self, ordinal):
        return self.index.attributes(self.check(ordinal))

    def fields(self, ordinal):
        return self.index.fields(ordinal, self.payload(ordinal))

    def find(self, key):
        """GEN-1: keys past the generation do not exist."""
        ordinal = self.index.find(key)
        return None if ordinal is None or ordinal >= self.n else ordinal

    def categories(self, name):
        """CAT-1: the categories of an attribute of that name and type."""
        names = [column["name"] for column in self.schema["attributes"]]
        return self.index.categories(names.index(name))

    def subset(self, expression, start=0, among=()):
        """SUB-2 to SUB-10: the ordinals of the samples for which an expression is true, counted from start on."""
        holds = Expression(self, expression, among).holds
        return [start + i for i in range(self.n) if holds(Looked(self, i, start + i))]

    def payload(self, ordinal):
        """Section 9, ENT-5, RD-1: the raw payload."""
        entry = self.entry(ordinal)
        data = self.data_file(entry.segment).read(entry.offset, entry.stored_len)
        check_crc(data, entry.crc, f"Sample {ordinal}")
        return lz4_decode(data, entry.raw_len) if entry.lz4 else data

    def data_file(self, s):
        """The file that holds segment s's samples, checked when it is opened (EXT-2, FPR-3)."""
        if not self.segments:
            return self.index.file
        if s not in self.files:
            segment = self.segments[s]
            path = os.path.join(self.path, segment["path"])
            if segment["kind"] == "external":
                self.check_links(path)
            file = ByteFile(path)
            require(file.length == segment["file_len"], f"{file.name} should have {segment['file_len']} bytes.")
            if segment["kind"] == "external":
                size = min(65536, file.length)
                ends = file.read(0, size) + file.read(file.length - size, size) + struct.pack("<Q", file.length)
                require(f"{xxh64(ends, 0):016x}" == segment["data_fingerprint"], f"{file.name} has changed (EXT-2).")
                self.notice_time(file, segment["modified_ns"])
            else:
                require(fingerprint(read_footer(file)[0]) == segment["fingerprint"],
                        f"{file.name} is another segment than the manifest's (FPR-3).")
            if len(self.files) >= 128:
                self.files.pop(next(iter(self.files))).file.close()
            self.files[s] = file
        return self.files[s]

    def require_leave(self, target):
        """EXT-4: what leads out of the dataset's parent directory is read only where that is allowed."""
        if not self.allow_external:
            raise NotPossible(f"{self.path} would read {target}, outside its parent directory (EXT-4).")

    def check_links(self, path):
        """EXT-4: with links followed, too."""
        parent, target = os.path.dirname(os.path.realpath(self.path)), os.path.realpath(path)
        if os.path.commonpath([parent, target]) != parent:
            self.require_leave(target)

    def notice_time(self, file, modified_ns):
        """EXT-3: reported once, and not an error."""
        found = os.fstat(file.file.fileno()).st_mtime_ns
        if not self.notices and max(-1 << 63, min(found, MASK >> 1)) != modified_ns:
            self.notices.append(f"{file.name} was modified since the dataset was made (EXT-3).")

    def extents(self):
        """CHK-1, PLN-2: the extents as pairs (first ordinal, end)."""
        index, found, begin = self.index, [], 0
        for s in range(self.segment_count):
            for chunk in range(index.chunk_starts[s], index.chunk_starts[s + 1]):
                end = begin + index.section(CHUNKS).number(chunk)
                require(end <= index.starts[s + 1], f"{index.name}: CHUNKS is damaged: its sums (CHK-1).")
                split = end - (end > begin and self.entry(end - 1).stored_len >= 8 * index.chunk_size)
                for a, b in (begin, split), (split, end):
                    found += [(first, min(first + 65536, b)) for first in range(a, b, 65536)]
                begin = end
            require(begin == index.starts[s + 1], f"{index.name}: CHUNKS is damaged: its sums (CHK-1).")
        return found

    def member_extents(self):
        return [self.extents()]

    def verify(self):
        """Yield a sentence for each problem: of every section of every index, and of every sample."""
        for segment in self.segments[:self.segment_count]:
            if segment["kind"] == "external":
                self.check_links(os.path.join(self.path, segment["path"]))
        own_indexes = range(min(len(self.segments), self.segment_count))  # a lone segment has none but index
        for check, argument in itertools.chain([(self.verify_index, self.index), (self.verify_lists, self.index)],
                                               ((self.verify_segment, s) for s in own_indexes),
                                               ((self.verify_sample, ordinal) for ordinal in range(self.n))):
            try:
                check(argument)
            except Newer:
                raise
            except GrainError as error:
                yield str(error)

    def verify_index(self, index):
        """Loading a section checks it. CAT-1."""
        for section in index.sections.values():
            section.data
        for kind, i in index.sections:
            if kind == CATEGORIES:
                index.categories(i)

    def verify_lists(self, index):
        """CHK-1, KEY-5: the numbers of the chunks add up, those of the buckets do not descend."""
        self.extents()
        if index.keyed:
            slots = [index.section(BUCKETS).number(b) for b in range((1 << index.bucket_bits) + 1)]
            require(slots == sorted(slots) and (slots[0], slots[-1]) == (0, index.n),
                    f"{index.name}: BUCKETS is damaged: its slot numbers (KEY-5).")

    def verify_segment(self, s):
        """FPR-1: a segment's own index."""
        segment = self.segments[s]
        own = Index(os.path.join(self.path, segment.get("index_file", segment["path"])))
        require(own.fingerprint == segment["fingerprint"], f"{own.name} is not the manifest's (FPR-1).")
        self.verify_index(own)
        own.file.file.close()

    def verify_sample(self, ordinal):
        self.attributes(ordinal)
        fields = self.fields(ordinal)
        for column in self.schema["fields"]:
            data = fields[column["name"]]
            require(data is None or array_fits(column["type"], len(data)),
                    f"Sample {ordinal}: field {column['name']!a} has {len(data or '')} bytes (FLD-4).")
        name = self.key(ordinal)
        require(name is None or self.find(name) == ordinal, f"Sample {ordinal} is not found by its key (KEY-4).")

    def close(self):
        for file in [self.index.file, *self.files.values()]:
            file.file.close()


class Several(Samples):
    """PLN-8: several datasets, end to end as one."""

    @property
    def notices(self):
        return [notice for member in self.members for notice in member.notices]

    def __init__(self, members):
        self.members, first = members, members[0]
        self.schema, self.user, self.keyed = first.schema, first.user, first.keyed
        for member in members:
            if (member.schema, member.keyed) != (self.schema, self.keyed):
                raise NotPossible(f"{first.path} and {member.path} differ in their attributes, fields or having keys.")
            if opaque_widths(member) != opaque_widths(first):
                raise NotPossible(f"{first.path} and {member.path} differ in the width of an attribute of unknown type.")
            mine, theirs = all_names(self), all_names(member)
            for name in mine:
                if mine[name] != theirs[name]:
                    raise NotPossible(f"{first.path} and {member.path} differ in their {name}.")
        self.starts = [0, *itertools.accumulate(map(len, members))]
        self.n, self.chunk_size = self.starts[-1], max(member.chunk_size for member in members)
        chained = f"{0:016x}"
        for member in members:
            chained = chain(chained, f"{member.fingerprint:016x}", member.n)
        self.fingerprint = int(chained, 16)

    @functools.cached_property
    def stored_bytes(self):
        return sum(member.stored_bytes for member in self.members)

    def locate(self, ordinal):
        """The member that has a sample, and the ordinal that it has there."""
        i = bisect.bisect_right(self.starts, self.check(ordinal)) - 1
        return self.members[i], ordinal - self.starts[i]

    def key(self, ordinal):
        member, ordinal = self.locate(ordinal)
        return member.key(ordinal)

    def attributes(self, ordinal):
        member, ordinal = self.locate(ordinal)
        return member.attributes(ordinal)

    def payload(self, ordinal):
        member, ordinal = self.locate(ordinal)
        return member.payload(ordinal)

    def find(self, key):
        """The sample of the first member that has the key."""
        found = ((start, member.find(key)) for start, member in zip(self.starts, self.members))
        return next((start + ordinal for start, ordinal in found if ordinal is not None), None)

    def subset(self, expression):
        """SUB-6, SUB-8: ordinals count on, class names are each member's own, a string is a category of some member."""
        return [ordinal for start, member in zip(self.starts, self.members)
                for ordinal in member.subset(expression, start, self.members)]

    def member_extents(self):
        return [[(start + a, start + b) for a, b in member.extents()]
                for start, member in zip(self.starts, self.members)]

    def close(self):
        for member in self.members:
            member.close()


def open(path, generation=None, allow_external=False):
    """Open a dataset's directory or a lone segment; generation counts from 0, the newest is the default (GEN-1).
    Files outside its parent directory that it names are read where that is allowed (EXT-4)."""
    return Dataset(path, generation, allow_external)


def open_all(paths, generation=None, allow_external=False):
    """Open several as one (PLN-8), or the only one."""
    members = [open(path, generation, allow_external) for path in paths]
    return members[0] if len(members) == 1 else Several(members)


# ---- orders -----------------------------------------------------------------------------------------------------

class Order:
    """The ordinals of an epoch: iterate, or ask for the one at a position from 0 to n - 1."""

    def __init__(self, n, chosen, place, state):
        self.n, self.chosen, self.place, self.begin = n, chosen, place, state
        self.name, self.lanes, self.group = state["order"], state["lanes"], state["group"]

    def at(self, position):
        return self.chosen[self.place(position)]

    def repeat(self, position):
        """PLN-9: how many visits of the same sample have a smaller index."""
        index = self.place(position)
        return index - bisect.bisect_left(self.chosen, self.chosen[index])

    def __iter__(self):
        return map(self.at, range(self.n))

    def mixing(self, batch_size, class_of=None, looks=11):
        """MIX-1, MIX-2, for global batches of batch_size samples: for 1 and 16 batches the mean number of different
        parts and of different classes, each with its expectation for a full shuffle."""
        report, n = {}, self.n
        groupings = {"parts": lambda position: bisect.bisect_left(self.chosen, self.at(position)) * 256 // n}
        if class_of:
            groupings["classes"] = lambda position: class_of(self.at(position))
        for batches in (1, 16):
            m = min(batches * batch_size, n)
            begins = [batch_size * min(j * (n // batch_size) // (looks + 1), (n - m) // batch_size)
                      for j in range(1, looks + 1)]
            for name, group_of in groupings.items():
                counts = [len(set(map(group_of, range(begin, begin + m))) - {None}) for begin in begins]
                sizes = collections.Counter(map(group_of, range(n)))
                full_shuffle = sum(1 - missed(n, m, size) for group, size in sizes.items() if group is not None)
                report[batches, name] = sum(counts) / looks, full_shuffle
        return report

    def batches(self, world=1, rank=0, batch_size=256, tail="short", start=None):
        """The batches of one rank, from position start on; where that is absent, from where the state stood."""
        return Batches(self, world, rank, batch_size, tail, self.begin["position"] if start is None else start)


class Batches:
    """RNK-1 to RNK-3, STA-3: iterate for lists of ordinals, or ask for those of one batch."""

    def __init__(self, order, world, rank, batch_size, tail, start):
        if not (0 <= rank < world and batch_size >= 1 and tail in TAILS):
            raise NotPossible("A rank is 0 to world - 1, a batch has at least 1 sample, a tail is one of three.")
        if not 0 <= start <= order.n:
            raise NotPossible(f"An epoch of {order.n} samples cannot begin at position {start}.")
        self.order, self.world, self.rank, self.tail, self.start = order, world, rank, tail, start
        self.global_size = world * batch_size
        if tail == "pad" and self.global_size > max(order.n, 1 << 24):
            raise NotPossible(f"A padded batch of {self.global_size} samples is too long (RNK-3).")
        left = order.n - start
        self.count = left // self.global_size + (tail != "drop" and left % self.global_size > 0)

    def __len__(self):
        return self.count

    def __getitem__(self, k):
        """IndexError past the last batch, so that iteration ends."""
        n = self.order.n
        return [self.order.at(position % n) for position in self.positions(k)]

    def positions(self, k):
        """RNK-1, RNK-2. Those from n on are padding (RNK-3)."""
        if not 0 <= k < self.count:
            raise IndexError(f"There is no batch {k}: there are {self.count}.")
        begin = self.start + k * self.global_size
        end = begin + self.global_size if self.tail == "pad" else min(begin + self.global_size, self.order.n)
        if self.order.name != "sequential":
            return range(begin + (self.rank - begin) % self.world, end, self.world)
        q, x = divmod(end - begin, self.world)
        first = begin + self.rank * q + min(self.rank, x)
        return range(first, first + q + (self.rank < x))

    def state_after(self, k):
        """STA-1, STA-3: the state from which the epoch continues after k batches of each rank."""
        position = min(self.order.n, self.start + min(k, self.count) * self.global_size)
        return json.dumps({**self.order.begin, "position": position}, separators=(",", ":"))


def read_state(text):
    """STA-1, CON-8."""
    what = "The state of an epoch"
    require(len(text.encode("utf-8", "surrogatepass")) <= STATE_LEN_MAX, f"{what} is longer than {STATE_LEN_MAX} bytes.")

    def whole_number(digits):
        require(digits != "-0", f"{what} has the number -0.")
        return int(digits[:21])  # 64 bits and more: as large, and of any length

    try:
        pairs = json.loads(text, object_pairs_hook=tuple, parse_int=whole_number)
    except (ValueError, RecursionError) as error:
        raise GrainError(f"{what} is not JSON: {error}.") from None
    require(type(pairs) is tuple, f"{what} is not an object.")
    state = dict(pairs)
    version = state.get("grainstore_state")
    if type(version) is int and version > 1:
        raise Newer(f"{what} was written by a newer grainstore: it has version {version}.")
    require(len(pairs) == len(state), f"{what} has a member twice.")
    if version == 1 and state.get("mixture") is not None:
        raise Newer(f"{what} was written by a newer grainstore: it has a mixture.")
    require(version != 1 or "group" in state and "mixture" in state,
            f"{what} has no group or no mixture: a development version of grainstore wrote it.")
    chunked, subset = state.get("order") == "chunked", state.get("subset")
    drawn = {"weights": str} if "weights" in state else {}
    only_chunked = {} if chunked else {"lanes": type(None), "group": type(None)}
    check_shape(state, {**STATE, **only_chunked, **drawn, "subset": type(subset)}, what)
    require(version == 1, f"{what} has version 0.")
    require(state["order"] in ("full", "chunked", "sequential"), f"{what} has an unknown order.")
    for digits in [state["fingerprint"]] + [subset] * (subset is not None) + [state[name] for name in drawn]:
        require(type(digits) is str and re.fullmatch("[0-9a-f]{16}", digits), f"{what}: {digits!a} is not a hash.")
    return state


def mix(x):
    """PLN-1: SplitMix64's finaliser."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def key(*parts):
    """PLN-1."""
    h = 0
    for part in parts:
        h = mix(h ^ part)
    return h


def below(k, i, n):
    """PLN-1."""
    return key(k, i) * n >> 64


def shuffled(k, n):
    """PLN-1: Fisher-Yates."""
    items = list(range(n))
    for i in range(n - 1, 0, -1):
        j = below(k, i, i + 1)
        items[i], items[j] = items[j], items[i]
    return items


def full(n, k):
    """PLN-4: a Feistel network with cycle-walking, as a function from position to ordinal."""
    half = max(3, -(-(n - 1).bit_length() // 2))
    round_keys = [key(k, 6, i) for i in range(8)]

    def place(position):
        while True:
            left, right = position >> half, position & (1 << half) - 1
            for round_key in round_keys:
                left, right = right, left ^ mix(round_key ^ right) >> 64 - half
            position = left << half | right
            if position < n:
                return position

    return place


def missed(n, m, size):
    """MIX-2: the probability that m of n samples, drawn without replacement, include none of a group of size."""
    if size > n - m:
        return 0
    return math.exp(sum(math.log1p(-max(size, m) / (n - i)) for i in range(min(size, m))))


def chunked(n, k, units, lanes):
    """PLN-5, as a function from position to index; units are lists of extents."""
    extents = [extent for unit in units for extent in unit]
    unit_first = [0, *itertools.accumulate(map(len, units))]
    ring = [e for j in shuffled(key(k, 1), len(units)) for e in range(unit_first[j], unit_first[j + 1])]
    start = [0, *itertools.accumulate(extents[e][1] - extents[e][0] for e in ring)]
    turn = below(key(k, 2), 0, n)
    # In an epoch the lanes take turns, so this keeps the current piece of each: never more than n numbers.
    shuffled_piece = functools.lru_cache(lanes)(lambda low, count: shuffled(key(k, 4, low), count))

    def place(position):
        lane, step = position % lanes, position // lanes
        q, x = divmod(n, lanes)
        a = lane * q + min(lane, x)
        b = a + q + (lane < x)
        phase = below(key(k, 3), lane, b - a)
        begin, t = a + phase, a + (phase + step) % (b - a)
        u = (t + turn) % n
        i = bisect.bisect_right(start, u) - 1
        first, end = extents[ring[i]]
        size, skipped = end - first, u - start[i]
        low, high = max(a, t - min(t, skipped)), min(b, t + (size - skipped))
        if low < begin < high:
            low, high = (low, begin) if t < begin else (begin, high)
        w = skipped - (t - low) + shuffled_piece(low, high - low)[t - low]
        return first + (w + below(key(k, 5), ring[i], size)) % size

    return place


# ---- subsets ----------------------------------------------------------------------------------------------------

def bitmap(n, ones):
    """CON-6."""
    octets = bytearray(-(-n // 8))
    for i in ones:
        octets[i // 8] |= 1 << i % 8
    return bytes(octets)


def subset_hash(ordinals, n):
    """SUB-1: of some of n samples, ascending."""
    m = len(ordinals)
    firsts = [i for i in range(m) if i == 0 or ordinals[i] != ordinals[i - 1]]
    repeats = b"" if len(firsts) == m else struct.pack("<Q", m) + bitmap(m, firsts)
    return xxh64(bitmap(n, ordinals) + repeats, n)


def integer_weights(weights, count):
    """PLN-10."""
    if len(weights) != count:
        raise NotPossible(f"There are {len(weights)} weights for {count} samples (PLN-10).")
    if not all(0 <= weight < math.inf for weight in weights) or not any(weights):
        raise NotPossible("A weight is negative or not finite, or all are 0 (PLN-10).")
    exact = [fractions.Fraction(weight) for weight in weights]
    e, largest = 0, max(exact)
    while 2**e <= largest:
        e += 1
    while largest < fractions.Fraction(2) ** (e - 1):
        e -= 1
    scale = fractions.Fraction(2) ** (63 - count.bit_length() - e)
    return [max(1, int(weight * scale)) if weight else 0 for weight in exact]


def draw(integers, samples, chosen, k):
    """PLN-11: the ordinals that are drawn, ascending."""
    if not 1 <= samples <= 1 << 40:
        raise NotPossible(f"{samples} samples cannot be drawn (PLN-11).")
    ends = list(itertools.accumulate(integers))
    k = key(k, 7)
    return sorted(chosen[bisect.bisect_right(ends, below(k, i, ends[-1]))] for i in range(samples))


TOKENS = re.compile(r"""[ \t\r\n]*(?:(?P<end>\Z)|(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_]))
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)|"(?P<name>(?:[^"\\]|\\.)*)"|'(?P<string>(?:[^'\\]|\\.)*)'
    |(?P<symbol><=|>=|==|!=|\.\.|[<>=(),]))""", re.VERBOSE | re.DOTALL)
ESCAPES = re.compile(rb"\\(?:([\\'\"])|([nrt])|x([0-9A-Fa-f]{2})|u\{([0-9A-Fa-f]{1,6})\}|)", re.DOTALL)
KEYWORDS = ("or", "and", "not", "in", "is", "true", "false")
SIDES = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
Token = collections.namedtuple("Token", "kind text column")


def tokenize(text):
    """SUB-2 to SUB-4: kinds are those of TOKENS, a keyword, a symbol or the end is a kind of its own."""
    try:
        if len(text.encode("utf-8")) > 65536:
            raise NotPossible("An expression has at most 65536 bytes (SUB-2).")
    except UnicodeEncodeError:
        raise NotPossible("An expression is UTF-8 (SUB-2).") from None
    found, at = [], 0
    while not found or found[-1].kind != "end":
        match = TOKENS.match(text, at)
        if not match:
            raise NotPossible(f"No part of an expression is at column {at + 1} or after it (SUB-2).")
        kind, at = match.lastgroup, match.end()
        token, column = match[kind], match.start(kind) + 1
        if kind == "number":
            token = check_number(token, column)
        elif kind in ("name", "string"):
            token = ESCAPES.sub(lambda escape: unescape(escape, column), token.encode("utf-8"))
        elif kind == "symbol" or token.lower() in KEYWORDS:
            kind = token.lower()
        found.append(Token(kind, token, column))
    return found


def check_number(token, column):
    """SUB-4: the number, without the zeros that its exponent begins with."""
    digits, _, exponent = token.lower().partition("e")
    exponent = re.fullmatch("([+-]?)0*([0-9]{1,3})", exponent or "0")
    if sum(map(str.isdigit, digits)) > 400 or not exponent or int(exponent[2]) > 400:
        raise NotPossible(f"The number at column {column} is too long (SUB-4).")
    return f"{digits}e{exponent[1]}{exponent[2]}"


def nearest_float32(text):
    """SUB-7."""
    try:
        return struct.unpack("<f", struct.pack("<f", float(text)))[0]
    except OverflowError:
        return float("-inf" if text.startswith("-") else "inf")


def nearest_narrow(text, bits, exponent_min, largest):
    """SUB-7: the nearest number of a type with so many bits after the point; ties to even."""
    value = float(text)
    if value == 0 or abs(value) > 2 * largest:
        return value and math.copysign(math.inf, value)
    unit = max(math.frexp(value)[1] - 1, exponent_min) - bits
    nearest = math.ldexp(round(math.ldexp(value, -unit)), unit)
    return nearest if abs(nearest) <= largest else math.copysign(math.inf, value)


NEAREST = {"float16": lambda text: nearest_narrow(text, 10, -14, 65504.0),
           "bfloat16": lambda text: nearest_narrow(text, 7, -126, math.ldexp(255, 120)),
           "float32": nearest_float32, "float64": float}


def unescape(escape, column):
    """SUB-3: one escape."""
    itself, letter, byte, character = escape.groups()
    try:
        return (itself or letter and {b"n": b"\n", b"r": b"\r", b"t": b"\t"}[letter]
                or byte and bytes([int(byte, 16)]) or chr(int(character, 16)).encode("utf-8"))
    except (TypeError, ValueError, OverflowError):
        raise NotPossible(f"There is no such escape in the string at column {column} (SUB-3).") from None


class Looked:
    """A sample that an expression looks at."""

    def __init__(self, dataset, place, ordinal):
        self.dataset, self.place, self.ordinal = dataset, place, ordinal

    @functools.cached_property
    def key(self):
        return self.dataset.key(self.place)

    @functools.cached_property
    def attributes(self):
        return self.dataset.attributes(self.place)


class Expression:
    """SUB-2 to SUB-10: an expression for one dataset. `holds` returns whether it is true for a sample."""

    def __init__(self, dataset, text, among=()):
        self.dataset, self.tokens, self.level = dataset, collections.deque(tokenize(text)), 0
        self.among = among or [dataset]  # what is read with it
        self.holds = self.any_of()
        self.expect("end")

    def took(self, kind, word=None):
        """The next token, where it is of that kind (and that word, in any case)."""
        token = self.tokens[0]
        if token.kind == kind and (word is None or token.text.lower() == word):
            return self.tokens.popleft()
        return None

    def expect(self, kind, word=None):
        return self.took(kind, word) or self.refuse(self.tokens[0], f"a {word or kind} is expected")

    def refuse(self, token, sentence):
        raise NotPossible(f"The expression at column {token.column}: {sentence} (SUB-2 to SUB-10).")

    def any_of(self):
        parts = [self.all_of()]
        while self.took("or"):
            parts.append(self.all_of())
        return parts[0] if len(parts) == 1 else lambda sample: any(part(sample) for part in parts)

    def all_of(self):
        parts = [self.one()]
        while self.took("and"):
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else lambda sample: all(part(sample) for part in parts)

    def one(self):
        token = self.took("not") or self.took("(")
        if not token:
            return self.test()
        self.level += 1
        if self.level > 100:
            self.refuse(token, "more than 100 levels")
        part = self.one() if token.kind == "not" else self.any_of()
        self.level -= 1
        if token.kind == "not":
            return lambda sample: not part(sample)
        self.expect(")")
        return part

    def test(self):
        token = self.took("name") or self.expect("word")
        name, found, fits = self.column(token)
        if name and self.took("is"):
            missing = bool(self.took("word", "missing") or not self.expect("word", "present"))
            return lambda sample: (sample.attributes[name] is None) == missing
        if self.took("word", "starts"):
            self.expect("word", "with")
            return self.search(token, found, bytes.startswith)
        if self.took("word", "contains"):
            return self.search(token, found, bytes.__contains__)
        relation = self.tokens.popleft()
        negated = relation.kind in ("!=", "not")
        if relation.kind in SIDES:
            side, bound = SIDES[relation.kind], self.value(fits, "number")[1]
            return lambda sample: side(found(sample), bound)
        if relation.kind in ("==", "=", "!="):
            holds = self.equal(self.value(fits)[1])
        elif relation.kind == "in" or negated and self.expect("in"):
            holds = self.items(fits)
        else:
            self.refuse(relation, "no test begins so")
        return lambda sample: holds(found(sample)) != negated

    def search(self, token, found, holds):
        """SUB-8: whether the key, the category, or the name of a number starts with or contains a string."""
        part, name = self.expect("string").text, token.text
        if token[:2] == ("word", "key"):
            return lambda sample: holds(found(sample), part)
        name = name if token.kind == "word" else name.decode("utf-8", "replace")
        types = {column["name"]: column["type"] for column in self.dataset.schema["attributes"]}
        if token.kind == "word" and name in ("ordinal", "key_hash"):
            self.refuse(token, "no text is there")
        if types[name] == "category":
            return lambda sample: holds(found(sample).encode("utf-8", "surrogateescape"), part)
        known = names_of(self.dataset, name)
        if known is None:
            self.refuse(token, "no text is there")
        places = {i for i, text in enumerate(known)
                  if isinstance(text, str) and holds(text.encode("utf-8", "replace"), part)}
        return lambda sample: found(sample) in places

    def items(self, fits):
        """The items of `in`, in parentheses or not, as one predicate."""
        closing, parts = self.took("("), [self.item(fits)]
        while self.took(","):
            parts.append(self.item(fits))
        if closing:
            self.expect(")")
        return lambda found: any(part(found) for part in parts)

    def item(self, fits):
        first, low = self.value(fits)
        if first.kind != "number" or not self.took(".."):
            return self.equal(low)
        last, high = self.value(fits, "number")
        if fractions.Fraction(first.text) >= fractions.Fraction(last.text):
            self.refuse(first, "a range holds nothing")
        return lambda found: low <= found < high

    def equal(self, value):
        """The numbers of a name are a set."""
        return lambda found: found in value if isinstance(value, set) else found == value

    def value(self, fits, kind=None):
        """The next token and what it is compared as."""
        token = self.tokens.popleft()
        if token.kind not in fits or kind not in (None, token.kind):
            self.refuse(token, f"a {kind or ' or '.join(fits)} is expected")
        return token, fits[token.kind](token.text)

    def column(self, token):
        """SUB-6 to SUB-9: an attribute's name, what of a sample is compared, and what fits: how each kind is read."""
        exact, name = {"number": fractions.Fraction}, token.text
        if token.kind == "word" and name in ("key", "key_hash") and not self.dataset.keyed:
            self.refuse(token, "the dataset has no keys")
        if token[:2] == ("word", "ordinal"):
            return None, lambda sample: sample.ordinal, exact
        if token[:2] == ("word", "key"):
            return None, lambda sample: sample.key, {"string": bytes}
        if token[:2] == ("word", "key_hash"):
            return None, lambda sample: fractions.Fraction(xxh64(sample.key, 0), 1 << 64), {
                "number": lambda text: self.fraction(token, text)}
        name = name if token.kind == "word" else name.decode("utf-8", "replace")
        types = {column["name"]: column["type"] for column in self.dataset.schema["attributes"]}
        if name not in types:
            self.refuse(token, f"there is no attribute {json.dumps(name)}, only {json.dumps(list(types))}")

        def found(sample):
            if sample.attributes[name] is None:
                self.refuse(token, f"sample {sample.ordinal} has no such attribute; `is present and` guards it")
            return sample.attributes[name]

        if types[name] == "bool":
            return name, found, {"true": lambda _: True, "false": lambda _: False}
        if types[name] in NEAREST:
            return name, found, {"number": NEAREST[types[name]]}
        if types[name] == "category":
            return name, found, {"string": lambda text: self.category(token, name, text)}
        if types[name] == "timestamp":
            return name, found, exact
        if types[name] not in ATTRIBUTE_TYPES:
            return name, found, {}
        if names_of(self.dataset, name) is not None:
            return name, found, {**exact, "string": lambda text: self.places(token, name, text)}
        return name, found, exact

    def fraction(self, token, text):
        """SUB-9: a number that a hash is compared with."""
        bound = fractions.Fraction(text)
        return bound if 0 <= bound <= 1 else self.refuse(token, "a hash is from 0 to 1")

    def category(self, token, name, text):
        """SUB-8: a category of some dataset that is read."""
        known = list(dict.fromkeys(itertools.chain(*(dataset.categories(name) for dataset in self.among))))
        text = text.decode("utf-8", "surrogateescape")
        return text if text in known else self.refuse(token, f"there is no category {text!a}, only {known[:10]!a}")

    def places(self, token, name, text):
        """SUB-8: the numbers that have a name."""
        names = enumerate(names_of(self.dataset, name))
        found = {i for i, known in names if isinstance(known, str) and known.encode("utf-8", "replace") == text}
        return found or self.refuse(token, f"there is no {text!r} among the names of {name}")



# ---- command line -----------------------------------------------------------------------------------------------

def run_ls(dataset, options):
    """print a line for each sample: ordinal, key, length and CRC-32 of the payload, attributes"""
    for i in range(len(dataset)):
        name, payload = dataset.key(i), dataset.payload(i)
        shown = None if name is None else name.decode("utf-8", "surrogateescape")
        print(i, json.dumps(shown), len(payload), f"{zlib.crc32(payload):08x}", json.dumps(dataset.attributes(i)),
              sep="\t")
    return 0


def run_get(dataset, options):
    """write a sample's payload; status 1 where there is no such key"""
    if (options.key is None) == (options.ordinal is None):
        raise NotPossible("Name a key, or an ordinal with --ordinal.")
    ordinal = options.ordinal if options.key is None else dataset.find(os.fsencode(options.key))
    if ordinal is None:
        print("There is no such key.", file=sys.stderr)
        return 1
    sys.stdout.buffer.write(dataset.payload(ordinal))
    return 0


def run_plan(dataset, options):
    """print the ordinals of a rank's batches, one a line, or those of one batch, or how mixed they are"""
    subset = None if options.subset is None else dataset.subset(options.subset)
    order = dataset.order(options.order, options.seed, options.epoch, options.window, options.lanes, options.group,
                          subset)
    batches = order.batches(options.world, options.rank, options.batch_size, options.tail, options.start)
    steps = range(len(batches)) if options.step is None else [options.step]
    if options.step is not None and not 0 <= options.step < len(batches):
        raise NotPossible(f"There is no step {options.step}: there are {len(batches)}.")
    mixing = tell_mixing(dataset, order, options) if options.mixing else None
    if options.json:
        step = None
        if options.step is not None:
            step = {"number": options.step, "positions": list(batches.positions(options.step)),
                    "ordinals": batches[options.step]}
        print(json.dumps({
            "fingerprint": f"{dataset.fingerprint:016x}", "order": order.name, "lanes": order.lanes,
            "group": order.group, "window_bytes": options.window, "seed": options.seed, "epoch": options.epoch,
            "world": options.world, "rank": options.rank, "batch_size": options.batch_size, "tail": options.tail, "samples": order.n,
            "start_position": batches.start, "batches": len(batches), "step": step, "mixing": mixing}))
    else:
        for batch in map(batches.__getitem__, () if mixing and options.step is None else steps):
            print(*batch, sep="\n", end="\n" * bool(batch))
        for looked in ("one_batch", "sixteen_batches") if mixing else ():
            for name, number in mixing[looked].items():
                print(looked, name, number, sep="\t")
    return 0


def tell_mixing(dataset, order, options):
    """MIX-1: classes are values of an integer, bool or category attribute; a dataset without `label` has none, unless one is named."""
    types = {column["name"]: column["type"] for column in dataset.schema["attributes"]}
    name = options.class_attribute or "label"
    is_class = types.get(name, "-") in [*(kind for kind in ATTRIBUTE_TYPES if "int" in kind), "bool", "category"]
    if not is_class and (options.class_attribute or name in types):
        raise NotPossible(f"There is no integer, bool or category attribute {name!a}.")
    class_of = (lambda ordinal: dataset.attributes(ordinal)[name]) if name in types else None
    size = options.world * options.batch_size
    report, mixing = {"global_batch_size": size, "places": 11}, order.mixing(size, class_of)
    for batches, looked in (1, "one_batch"), (16, "sixteen_batches"):
        report[looked] = {}
        for of in ("parts", "classes"):
            report[looked][of], report[looked]["full_shuffle_" + of] = mixing.get((batches, of), (None, None))
    return report


def run_verify(dataset, options):
    """print a sentence for each problem; status 1 where there is one"""
    found = list(dataset.verify())
    print(*found, sep="\n", end="\n" * bool(found))
    return int(bool(found))


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description="Read grainstore datasets and segments.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in ("ls", run_ls), ("get", run_get), ("plan", run_plan), ("verify", run_verify):
        command = commands.add_parser(name, help=run.__doc__)
        command.set_defaults(run=run)
        command.add_argument("dst", nargs="+" if name == "plan" else 1)
        command.add_argument("--generation", type=int)
        command.add_argument("--allow-external", action="store_true")
        if name == "get":
            command.add_argument("key", nargs="?")
            command.add_argument("--ordinal", type=int)
        if name == "plan":
            command.add_argument("--order", default="auto", choices=("full", "chunked", "sequential", "auto"))
            command.add_argument("--seed", type=int, default=0)
            command.add_argument("--epoch", type=int, default=0)
            command.add_argument("--window", type=int, default=WINDOW)
            command.add_argument("--lanes", type=int)
            command.add_argument("--group", type=int)
            command.add_argument("--world", type=int, default=1)
            command.add_argument("--rank", type=int, default=0)
            command.add_argument("--batch-size", type=int, default=256)
            command.add_argument("--tail", choices=TAILS, default="short")
            command.add_argument("--start", type=int, default=0)
            command.add_argument("--step", type=int)
            command.add_argument("--subset", metavar="EXPRESSION")
            command.add_argument("--mixing", action="store_true")
            command.add_argument("--class-attribute", metavar="NAME")
            command.add_argument("--json", action="store_true")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Exit status: 0, 1 (no such key, or verify found damage), 2 (cannot do it)."""
    options = parse_arguments(arguments)
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        dataset = open_all(options.dst, options.generation, options.allow_external)
        status = options.run(dataset, options)
        print(*dataset.notices, sep="\n", end="\n" * bool(dataset.notices), file=sys.stderr)
        dataset.close()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 2
    except GrainError as error:
        damaged = options.command == "verify" and not isinstance(error, NotPossible)
        print(error, file=sys.stdout if damaged else sys.stderr)
        return 1 if damaged else 2
    except (OSError, MemoryError) as error:
        print(f"That is not possible: {error or 'memory is short'}.", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
