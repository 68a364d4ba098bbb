"""Cases that break a rule of the manifest, or that a later grainstore wrote."""

from cases import Case, dataset_case, segment_case
from layout import BLOCK, External, Sample, Shape, chain, crc, dataset, hex64, lz4, manifest_text, native, unlz4

PLAIN = [Sample(b"hello"), Sample(b"x" * 10)]
FOREIGN = b"0123456789abcdef"
PARTS = [Sample(FOREIGN[2:6], gap=2), Sample(FOREIGN[8:16], gap=2)]


HALVES = PLAIN[:1], PLAIN[1:]


def alone(path, rules, about, change=None, text=None, external=None, parts=(PLAIN,), beside=None, shape=None, **expected):
    """A dataset of which only the manifest is wrong: all files are there, `beside` too, which are copies of one of them by its name."""
    parts = parts if external is None else (External(external, PARTS, FOREIGN),)
    files, _, _ = dataset(shape or Shape(), *parts, manifest=change, text=text)
    if external is not None:
        files["a.bin"] = FOREIGN
    files |= {name: files[of] for name, of in (beside or {}).items()}
    expected = {"found_by": "opener", "open": "damaged", "verify": "damaged", **expected}
    Case("invalid/" + path, rules, about, {f"invalid/{path}/{name}": data for name, data in files.items()}, **expected)


def again(change):
    """The text before the tail changed, and its crc32 computed again."""
    def changed(data):
        text = change(data[:-26])
        return text + b',\n  "crc32": "%08x"\n}\n' % crc(text)
    return changed


def replaced(old, new):
    return again(lambda text: text.replace(old, new, 1))


def texts():
    alone("man-1-crc.grain", "MAN-1", "a byte changed", text=lambda data: data.replace(b'"compatible_features": 0', b'"compatible_features": 4'))
    alone("man-1-tail.grain", "MAN-1", "a space more in the tail", text=lambda data: data.replace(b'"crc32": ', b'"crc32":  '))
    alone("man-1-upper-case.grain", "MAN-1", "digits in upper case", text=upper)
    alone("man-1-cut.grain", "MAN-1", "the last byte is missing", text=lambda data: data[:-1])
    alone("man-1-appended.grain", "MAN-1", "an end of line more", text=lambda data: data + b"\n")
    either = ["damaged", "not_grainstore"]
    alone("fil-2-empty-manifest.grain", "MAN-5", "no bytes", text=lambda data: b"", open=either, verify=either)
    start = {"open": "not_grainstore", "verify": either}
    alone("man-5-other-format.grain", "MAN-5", "another format", text=replaced(b'"grainstore"', b'"grainstock"'), **start)
    alone("man-5-order.grain", "MAN-5", "version before format", text=replaced(
        b'"format": "grainstore",\n  "version": 0', b'"version": 0,\n  "format": "grainstore"'), **start)
    alone("man-5-no-version.grain", "MAN-5", "another member than version", text=replaced(b'"version": 0', b'"release": 0'), **start)
    alone("man-5-late.grain", "MAN-5", "white space of 4096 bytes before the first member",
          text=again(lambda text: b" " * 4096 + text), **start)
    alone("con-8-mark.grain", "CON-8 MAN-5", "a byte order mark", text=again(lambda text: b"\xef\xbb\xbf" + text), open=either, verify=either)
    for name, old, new in (("minus-zero", b'"incompatible_features": 0', b'"incompatible_features": -0'),
                           ("fraction", b'"compatible_features": 0', b'"compatible_features": 0.0'),
                           ("exponent", b'"segment_count": 1', b'"segment_count": 1e0'),
                           ("leading-zero", b'"segment_count": 1', b'"segment_count": 01'),
                           ("text-for-a-number", b'"segment_count": 1', b'"segment_count": "1"'),
                           ("65-bits", b'"file_len": 32768', b'"file_len": 18446744073709584384'),
                           ("twice", b'"kind": "native"', b'"kind": "native", "kind": "native"'),
                           ("comment", b'"index":', b'/* */ "index":'), ("not-utf-8", b'"native",', b'"native", "note": "\xff",')):
        alone(f"con-8-{name}.grain", "CON-8 MAN-2", name.replace("-", " "), text=replaced(old, new))
    alone("con-8-minus-zero-time.grain", "CON-8 EXT-3", "-0 where a sign may be", text=replaced(b": 1732233600000000000", b": -0"),
          external="a.bin")


def members():
    for name in ("incompatible_features", "compatible_features", "index", "segments", "generations"):
        alone(f"man-2-no-{name.replace('_', '-')}.grain", "MAN-2", f"no member {name}", lambda document: document.pop(name))

    def first(**values):
        return lambda document: document["segments"][0].update(values)

    def generation(**values):
        return lambda document: document["generations"][0].update(values)

    for name, rules, change in (
            ("man-2-features-range", "MAN-2", lambda document: document.update(compatible_features=2**32)),
            ("man-2-fingerprint-upper", "MAN-2 CON-10", lambda document: change_first(document, "fingerprint", str.upper)),
            ("man-2-kind", "MAN-2", first(kind="remote")), ("man-2-null", "MAN-2", first(path=None)),
            ("man-3-no-segments", "MAN-3", lambda document: document.update(segments=[])),
            ("gen-1-none", "GEN-1", lambda document: document.update(generations=[])),
            ("gen-1-twice", "GEN-1", lambda document: document["generations"].append(document["generations"][0])),
            ("gen-1-zero", "GEN-1", lambda document: document["generations"].insert(
                0, {"segment_count": 0, "sample_count": 0, "fingerprint": "0" * 16})),
            ("gen-1-beyond", "GEN-1", generation(segment_count=2)), ("gen-1-samples", "GEN-1", generation(sample_count=3)),
            ("gen-1-fingerprint", "GEN-1 FPR-2", generation(fingerprint="0123456789abcdef"))):
        alone(f"{name}.grain", rules, f"manifest: {name[6:].replace('-', ' ')}", change)
    for name, path in ("slash", "a/00000.seg"), ("up", ".."), ("dot", "."), ("empty", ""), ("absolute", "/00000.seg"), ("nul", "a\0b"), (
            "long", "n" * 256):
        alone(f"man-3-{name}.grain", "MAN-3", f"the path of a native segment: {name}", first(path=path), parts=HALVES,
              beside={"a/00000.seg": "00000.seg"} if name == "slash" else None)
    alone("man-3-index-up.grain", "MAN-3", "an index in the parent directory and back", parts=HALVES,
          change=lambda document: document["index"].update(file="../man-3-index-up.grain/" + document["index"]["file"]))
    seed = next(seed for seed in range(1000) if native(Shape(hash_seed=seed), PLAIN).fingerprint < 2**60)
    alone("man-2-fingerprint-short.grain", "MAN-2 CON-10", "a fingerprint of 15 digits", shape=Shape(hash_seed=seed),
          change=lambda document: change_first(document, "fingerprint", lambda digits: digits[1:]))
    alone("gen-1-not-all.grain", "GEN-1", "the last generation does not have all segments", parts=HALVES, change=older)
    there = {"empty-part": ("a/b",), "up-later": ("a/x", "b"), "slash-at-end": ("a",)}
    for name, path in (("empty", ""), ("two-slashes", "//a.bin"), ("empty-part", "a//b"), ("dot", "./a.bin"), ("up-later", "a/../b"),
                       ("slash-at-end", "a/"), ("only-up", ".."), ("root", "/"), ("nul", "a\0b"), ("up-after-root", "/../a"),
                       ("only-ups", "../.."), ("long", "a" * 4097)):
        alone(f"ext-1-{name}.grain", "EXT-1", f"the path of an external segment: {name.replace('-', ' ')}", external=path,
              beside={file: "a.bin" for file in there.get(name, ())})
    for name in ("index_file", "data_fingerprint", "modified_ns"):
        alone(f"ext-1-no-{name.replace('_', '-')}.grain", "MAN-2 EXT-1", f"an external segment without {name}",
              lambda document: document["segments"][0].pop(name), external="a.bin")
    alone("ext-3-range.grain", "EXT-3", "a time of more than 64 bits", first(modified_ns=2**63), external="a.bin")


def datasets():
    def broken(path, rules, about, *segments, **change):
        dataset_case("invalid/" + path, rules, about, *segments, **{"verify": "damaged", **change})

    path = "invalid/man-5-absent.grain"
    files = {f"{path}/{name}": data for name, data in dataset(Shape(), PLAIN)[0].items() if name != "manifest.json"}
    Case(path, "MAN-5", "a directory without a manifest", files,
         found_by="opener", open="not_grainstore", verify="not_grainstore")

    def other(document):
        document["index"]["fingerprint"] = "0123456789abcdef"

    def beside(path, data=FOREIGN):
        return {f"invalid/{path}/a.bin": data}

    halves, both = HALVES, {"found_by": "opener", "open": "damaged"}
    later = {"found_by": "reader", "open": ["ok", "damaged"]}
    broken("man-4-fingerprint.grain", "MAN-4 FPR-1", "an index of another fingerprint", PLAIN, manifest=other, **both)
    broken("man-3-counts.grain", "MAN-3", "an index that counts the samples of the segments in another way", [PLAIN[0]], [PLAIN[1], PLAIN[1]],
           manifest=recount, **both)
    path = "fpr-1-segment.grain"
    replaced = native(Shape(), [Sample(b"y" * 10)]).data
    broken(path, "FPR-1 ENT-5", "another segment than the one that was indexed", *halves, fails=[{"read": 1}],
           beside={f"invalid/{path}/00001.seg": replaced}, **later)
    path = "fpr-3-segment.grain"
    replaced = native(Shape(user='{"a":1}'), HALVES[1]).data
    broken(path, "FPR-3", "another segment than the one that was indexed, whose samples have the same bytes", *halves, fails=[{"read": 1}],
           beside={f"invalid/{path}/00001.seg": replaced}, **later)
    broken("man-3-file-len.grain", "MAN-3", "a segment of another length", *halves, fails=[{"read": 1}],
           manifest=lambda document: document["segments"][1].update(file_len=BLOCK * 9), **later)
    kinds = Shape(attributes=(("i", "int8"),))
    rows = [Sample(b"a", attributes={"i": 1})], [Sample(b"b", attributes={"i": 2})]
    broken("mrg-1-attribute.grain", "MRG-1", "a merged index that has another value than the segment", *rows, shape=kinds,
           merged={"index": lambda index: index.attributes[0].values.__setitem__(1, b"\3")}, found_by="verifier", open=["ok", "damaged"],
           lookups="any")
    broken("met-1-schemas.grain", "MET-1", "a segment of another schema", *halves, found_by="verifier", open="ok",
           merged={}, segment={"index": lambda index: setattr(index, "metadata", index.metadata.replace(b"data", b"dato"))})
    broken("hdr-2-chunk-size.grain", "HDR-2", "a segment with chunks twice as large", *halves, found_by="verifier", open=["ok", "damaged"],
           segment={"index": one_chunk, "directory": lambda found: found.update(log2=13)})
    for name, segment in ("index", {"merged": {"header": kind_of(1)}}), ("segment", {"segment": {"header": kind_of(2)}}):
        broken(f"hdr-1-kind-{name}.grain", "HDR-1 FIL-3", f"the header of the {name} gives the other kind", *halves, found_by="verifier",
               open=["ok", "damaged"], **segment)
    for member, value in ("hash_seed", 8), ("alignment", 2):
        broken(f"hdr-2-{member.replace('_', '-')}.grain", "HDR-2", f"a segment with another {member} than the merged index", *halves,
               found_by="verifier", open=["ok", "damaged"], segment={"directory": lambda found: found.update({member: value})})
    alone("man-4-other-index.grain", "MAN-4", "one segment, and an index that is not its own",
          lambda document: document["index"].update(file="other.idx"), beside={"other.idx": "00000.seg"})
    alone("man-4-two-fingerprints.grain", "MAN-4 FPR-1", "one segment, and two fingerprints of its index", two_fingerprints)
    alone("man-4-merged-fingerprint.grain", "MAN-4 FPR-1", "a merged index of another fingerprint", other, parts=HALVES)

    def far(index):
        index.segments[0][1], index.entries[1][1] = 2**44 + 1, 2**44 + 1 - 8
        index.counts, index.edges = [1] + [0] * (2**14 - 2) + [1, 0], [False] * (2**14 - 1) + [True, False]
    broken("seg-3-too-far.grain", "SEG-3", "data that end after 2^44", External("a.bin", PARTS, FOREIGN, 2**44 + 1, index=far),
           shape=Shape(log2=30), **both)
    path = "ext-2-changed.grain"
    broken(path, "EXT-2", "a data file that was changed before the first sample", External("a.bin", PARTS, FOREIGN),
           beside=beside(path, b"!" + FOREIGN[1:]), fails=[{"read": 0}, {"read": 1}], **later)
    path = "ext-2-longer.grain"
    broken(path, "EXT-2", "a data file that grew", External("a.bin", PARTS, FOREIGN), beside=beside(path, FOREIGN + b"0"),
           fails=[{"read": 0}, {"read": 1}], **later)
    path = "seg-2-external.grain"
    broken(path, "SEG-2", "samples after the end of an external file", External("a.bin", PARTS, FOREIGN[:14]), beside=beside(path, FOREIGN[:14]),
           **both)
    path = "ent-4-external.grain"
    broken(path, "ENT-4", "a sample before the one before it", External("a.bin", [Sample(FOREIGN[8:16], gap=8), Sample(FOREIGN[2:6], gap=-14)], FOREIGN,
           index=lambda index: index.segments[0].__setitem__(1, 16)), beside=beside(path), found_by="verifier", open=["ok", "damaged"])


def one_chunk(index):
    """All samples in the first chunk of several."""
    index.counts, index.edges = [index.n], [False]


def kind_of(number):
    return lambda header: header.update(kind=number)


def merged():
    """MRG-1: the merged index is right, and that of the second segment differs from it in one thing. Where `rules` has another
    rule than MRG-1, that index breaks it by itself, too, or the other rule is the reason."""
    def one(name, rules, about, samples, change, shape=None, first=None, **stages):
        def second(index):
            if index.samples[0] is samples[0]:
                change(index)
        first = first or Sample(b"first", *[b"k"] * (samples[0].key is not None), attributes=samples[0].attributes, fields=samples[0].fields)
        dataset_case(f"invalid/mrg-1-{name}.grain", rules, about, [first], samples, shape=shape, found_by="verifier",
                     open=["ok", "damaged"], verify="damaged", segment={"index": second, **stages})

    def boundary(index):
        index.entries[0][2:] = [crc(b"aa"), False, 2]
        index.entries[1][1:] = [BLOCK + 2, crc(b"a"), False, 1]

    one("entry", "MRG-1", "the bytes of two samples are divided in another way", [Sample(b"a"), Sample(b"aa")], boundary)

    def rekey(index):
        index.samples = [Sample(b"x", b"other"), *index.samples[1:]]
        index.add_keys()
    one("key", "MRG-1", "another key", [Sample(b"x", b"a"), Sample(b"y", b"b")], rekey)
    one("chunks", "MRG-1 CHK-1", "another number of samples of a chunk", [Sample(b"a" * 3000), Sample(b"b" * 3000), Sample(b"c")],
        lambda index: index.counts.__setitem__(slice(None), [1, 1, 1][:len(index.counts)]))
    one("data-end", "MRG-1 SEG-2", "another data_end", [Sample(b"a"), Sample(b"b")], lambda index: index.segments[0].__setitem__(1, BLOCK + 3))

    columns = Shape(fields=(("f", "bytes"), ("g", "bytes")))
    rows = [Sample(b"abcd", fields={"f": (0, 2), "g": (2, 2)}), Sample(b"abc", fields={"f": (0, 2), "g": (0, 0)})]
    one("field", "MRG-1", "a field of other bytes", rows, lambda index: index.fields[0].values.__setitem__(1, (1, 2)), columns)
    one("field-missing", "MRG-1 FLD-3", "a field that is missing, and one of no bytes", rows,
        lambda index: index.fields[1].validity.__setitem__(1, False), columns)

    kinds = Shape(attributes=(("c", "category"), ("i", "int8")))
    rows = [Sample(b"a", attributes={"c": "x", "i": 1}), Sample(b"b", attributes={"c": "y", "i": 0})]
    one("category", "MRG-1", "another category of the same code", rows, lambda index: index.attributes[0].categories.__setitem__(1, "z"), kinds)
    one("missing", "MRG-1 ATR-2", "a value that is missing, and one of 0", rows,
        lambda index: index.attributes[1].validity.__setitem__(1, False), kinds)
    one("user", "MRG-1 GEN-4", "other user metadata than the last segment's", [Sample(b"a"), Sample(b"b")],
        lambda index: setattr(index, "metadata", index.metadata.replace(b'"user":{}', b'"user":{"a":1}')))
    sequences = [(b"ab", 2, 50), (b"12345",)]
    packed = Sample(unlz4(sequences), block=lz4(*sequences))
    one("raw-len", "MRG-1", "another raw length of an LZ4 sample", [packed], lambda index: index.raw_len.__setitem__(0, packed.raw_len - 1),
        directory=lambda found: found.update(payload_bytes=found["payload_bytes"] - (found["payload_bytes"] == packed.raw_len)))


def change_first(document, member, change):
    """Another spelling of a member of the first segment."""
    before = document["segments"][0][member]
    document["segments"][0][member] = change(before)
    assert before != change(before)


def older(document):
    """A generation of the first segment instead of all."""
    first = document["segments"][0]
    link = int(first["fingerprint"], 16), first["sample_count"]
    document["generations"] = [{"segment_count": 1, "sample_count": link[1], "fingerprint": hex64(chain([link]))}]


def upper(data):
    """The digits of the manifest's crc32 in upper case."""
    changed = data[:-12] + data[-12:].upper()
    assert changed != data
    return changed


def two_fingerprints(document):
    """Another fingerprint of the segment, and of the dataset, but not of the index."""
    first = document["segments"][0]
    first["fingerprint"] = "0123456789abcdef"
    document["generations"][0]["fingerprint"] = hex64(chain([(0x0123456789abcdef, first["sample_count"])]))


def recount(document):
    """Counts 2 and 1 instead of 1 and 2, with fingerprints of the dataset that agree."""
    first, second = document["segments"]
    first["sample_count"], second["sample_count"] = 2, 1
    links = [(int(one["fingerprint"], 16), one["sample_count"]) for one in (first, second)]
    document["generations"][0]["fingerprint"] = hex64(chain(links))


def newer():
    def one(path, rules, about, *, make=segment_case, samples=PLAIN, **change):
        make("newer/" + path, rules, about, samples, **{"open": "newer", "verify": "newer", **change})

    def raised(**values):
        return {stage: lambda found: found.update(values) for stage in ("header", "footer")}

    one("ver-1-version-1.seg", "VER-1 HDR-1 FTR-1", "version 1, and a checksum that this version cannot check", **raised(version=1, crc=0))
    one("ver-1-version-largest.seg", "VER-1", "the largest version", **raised(version=2**32 - 1))
    one("ver-1-header-only.seg", "VER-1 FTR-3", "version 1 in the header alone", header=lambda found: found.update(version=1))
    one("ver-2-bit-0.seg", "VER-2", "incompatible bit 0", **raised(incompatible=1))
    one("ver-2-bit-31.seg", "VER-1", "incompatible bit 31", **raised(incompatible=2**31))
    for kind in (18, 32767):
        one(f"dir-2-kind-{kind}.seg", "DIR-2", f"a section of kind {kind}",
            sections=lambda found: found.append([kind, 3, 5, b"later"]))

    def text(path, rules, about, data):
        Case("newer/" + path, rules, about, {f"newer/{path}/manifest.json": data}, open="newer", verify="newer")

    start = b'{"format":"grainstore","version":'
    text("man-5-least.grain", "MAN-5", "nothing but a format and version 1", start + b"1}")
    text("man-5-not-json.grain", "MAN-5", "what follows the version is not JSON", start + b"2,\xff\0 binary from here")
    text("man-5-largest.grain", "MAN-5", "a version of 64 bits", start + b"18446744073709551615,")
    text("man-5-spaces.grain", "MAN-5", "white space between all tokens",
         b'\n\t{\r\n "format" \n : \t "grainstore" , \r "version" \n\n:\t1 ,"more":[]}' + b" " * 5000)
    text("man-5-crc.grain", "MAN-5 MAN-1", "version 1 and a crc32 that does not match",
         manifest_text({"format": "grainstore", "version": 1, "shards": []})[:-12] + b'00000000"\n}\n')
    files, _, _ = dataset(Shape(), PLAIN, manifest=lambda document: document.update(incompatible_features=4))
    text("man-2-incompatible.grain", "MAN-2 VER-1", "an incompatible bit", files["manifest.json"])
    newer_index = {stage: lambda found: found.update(version=1) for stage in ("header", "footer")}
    dataset_case("newer/ver-1-index.grain", "VER-1", "a merged index of version 1", PLAIN[:1], PLAIN[1:], merged=newer_index,
                 open="newer", verify="newer")
    path = "newer/ver-1-segment.grain"
    later = native(Shape(), PLAIN[1:], **newer_index).data
    dataset_case(path, "VER-1", "a segment of version 1 beside an index of version 0", PLAIN[:1], PLAIN[1:], open=["ok", "newer"],
                 verify="newer", beside={f"{path}/00001.seg": later})


def make():
    for part in (texts, members, datasets, merged, newer):
        part()
