"""What a case is, and what its line in expected.json holds."""

from layout import FLOATS, Shape, chain, dataset, hex64, native, value_bytes, xxh64

CASES = []


class Case:
    """A segment or a dataset of the corpus. `files` are paths in the folder of its class (valid, invalid, newer); `stated` are
    facts that the file gives wrong."""

    def __init__(self, path, rules, about, files, index=None, states=None, stated=None, **expected):
        self.path, self.rules, self.about, self.files = path, rules.split(), about, files
        self.index, self.states, self.stated, self.expected = index, states, stated or {}, expected
        CASES.append(self)

    def line(self):
        """The element of expected.json."""
        line = {"path": self.path, "rules": self.rules, "about": self.about, **self.expected}
        if self.index is not None:
            line |= {"facts": facts(self.index, self.states) | self.stated, "samples": samples(self.index)}
        return line


def segment_case(path, rules, about, samples, shape=None, beside=None, **change):
    """A lone native segment."""
    expected = {name: change.pop(name) for name in EXPECTED if name in change}
    built = native(shape or Shape(), samples, **change)
    states = [{"segment_count": 1, "sample_count": built.index.n,
               "fingerprint": hex64(chain([(built.fingerprint, built.index.n)]))}]
    return Case(path, rules, about, {path: built.data, **(beside or {})}, built.index, states, **expected)


def dataset_case(path, rules, about, *segments, shape=None, beside=None, **change):
    """A dataset's directory. `beside` are files of the folder that are not in it."""
    expected = {name: change.pop(name) for name in EXPECTED if name in change}
    files, index, states = dataset(shape or Shape(), *segments, **change)
    files = {f"{path}/{name}": data for name, data in files.items() if data is not None}
    return Case(path, rules, about, {**files, **(beside or {})}, index, states, **expected)


EXPECTED = ("open", "verify", "found_by", "fails", "absent_keys", "options", "sparse", "lookups", "stated")


def facts(index, states):
    shape = index.shape
    columns = [[{"name": name, "type": kind} for name, kind in one] for one in (shape.attributes, shape.fields)]
    found = {"sample_count": index.n, "segment_count": len(index.segments), "generations": states,
             "fingerprint": states[-1]["fingerprint"], "chunk_size": shape.chunk, "alignment": shape.alignment,
             "hash_seed": shape.hash_seed, "keyed": index.keyed,
             "stored_bytes": sum(sample.stored_len for sample in index.samples),
             "payload_bytes": sum(sample.raw_len for sample in index.samples),
             "attributes": columns[0], "fields": columns[1], "user": shape.user}
    categories = {name: column.categories for (name, kind), column in zip(shape.attributes, index.attributes)
                  if kind == "category" and all(isinstance(one, str) for one in column.categories)}
    return {**found, "categories": categories} if categories else found


def samples(index):
    return [sample_line(index, i, sample) for i, sample in enumerate(index.samples)]


def sample_line(index, i, sample):
    line = {"key": None if sample.key is None else key_text(sample.key)}
    if index.shape.attributes:
        line["attributes"] = {name: attribute_text(kind, sample.attributes.get(name), column.width)
                              for (name, kind), column in zip(index.shape.attributes, index.attributes)}
    if index.shape.columns:
        line["fields"] = {name: field_text(sample, sample.fields.get(name)) for name, _ in index.shape.fields}
    else:
        line["fields"] = {index.shape.fields[0][0]: field_text(sample, (0, sample.raw_len))}
    return line


def key_text(key):
    """Hexadecimal digits; a long key repeats its first byte, and is `[digits of the byte, how often]`."""
    if len(key) <= 64:
        return key.hex()
    assert key == key[:1] * len(key)
    return [key[:1].hex(), len(key)]


def attribute_text(kind, value, width):
    """Integers, bools and categories as JSON has them; floats as the digits of their bits; others as their bytes."""
    if value is None or kind in ("category", "bool") or kind.startswith(("int", "uint", "timestamp")):
        return value
    if kind in FLOATS or kind == "bfloat16":
        return {"bits": value_bytes(kind, value, width)[::-1].hex()}
    return {"hex": value.hex()}


def field_text(sample, where):
    """The bytes of a short field, length and XXH64 (seed 0) of a longer one; length and CRC-32 of a long sample."""
    if where is None:
        return None
    if len(sample.payload) < sample.raw_len:
        return {"len": sample.raw_len, "crc32": f"{sample.crc:08x}"}
    part = sample.payload[where[0]:where[0] + where[1]]
    return {"hex": part.hex()} if len(part) <= 32 else {"len": len(part), "xxh64": hex64(xxh64(part))}
