#!/usr/bin/env python3
"""Runs grain_reader.py over the conformance corpus: prints each answer that is not the expected one; status 1 where there is one.

    check_corpus.py CORPUS

It shows how corpus/README.md means its tables; another reader's program would look the same.
"""

import json
import os
import pathlib
import shutil
import struct
import sys
import tempfile

import grain_reader as reader

FLOATS = {"float16": "e", "float32": "f", "float64": "d"}


class Checker:
    """Collects what differs."""

    def __init__(self, root, folder):
        self.root, self.folder, self.wrong, self.count, self.open_cases = root, folder, [], 0, {}

    def same(self, what, found, expected):
        self.count += 1
        if found != expected:
            self.wrong.append(f"{what}: {str(found)[:300]} instead of {str(expected)[:300]}")

    def path_of(self, case):
        """The case's file or directory; a copy with its sparse files where it has some."""
        path = self.root / case["path"]
        for name, length in case.get("sparse", {}).items():
            path = self.folder / pathlib.Path(case["path"]).name
            shutil.copytree(self.root / case["path"], path, dirs_exist_ok=True)
            with open(self.folder / name, "wb") as file:
                file.truncate(length)
        return path

    def check(self, case):
        """One element of expected.json."""
        path, what, options = self.path_of(case), case["path"], case.get("options", {})
        for option in options:
            self.same(f"{what}: without {option}", result_of(lambda: reader.open(path))[0], "refused")
        allowed = listed(case["open"])
        result, dataset = result_of(lambda: reader.open(path, **options))
        if result not in allowed:
            return self.same(f"{what}: open: {dataset}", result, allowed)
        if dataset is not None and result == "ok":
            self.check_open(what, case, dataset)
        for generation, state in enumerate(case.get("facts", {}).get("generations", ()) if case["open"] == "ok" else ()):
            one = reader.open(path, generation=generation, **options)
            self.same(f"{what}: generation {generation}", [one.segment_count, len(one), f"{one.fingerprint:016x}"],
                      [state["segment_count"], state["sample_count"], state["fingerprint"]])
            self.check_samples(f"{what}: generation {generation}", case, one, {})
            one.close()
        if "sparse" not in case:
            self.check_verify(what, case, path, options)

    def check_open(self, what, case, dataset):
        fails = {tuple(*one.items()) for one in case.get("fails", ())}
        if case["open"] == "ok":
            self.check_facts(what, case["facts"], dataset)
        self.check_samples(what, case, dataset, fails)
        for action, argument in fails:
            if action == "find":
                self.same(f"{what}: find {argument}", result_of(lambda: dataset.find(bytes.fromhex(argument)))[0], "damaged")
            if action == "order":
                self.same(f"{what}: {argument} order", result_of(lambda: list(dataset.order(argument)))[0], "damaged")
        for key in case.get("absent_keys", ()):
            self.same(f"{what}: find {key}", dataset.find(bytes.fromhex(key)), None)
        dataset.close()

    def check_facts(self, what, facts, dataset):
        index = dataset.index
        attributes, fields = (
            [{"name": one["name"], "type": one["type"]} for one in dataset.schema[part]] for part in ("attributes", "fields"))
        found = {"sample_count": len(dataset), "segment_count": dataset.segment_count, "keyed": dataset.keyed,
                 "fingerprint": f"{dataset.fingerprint:016x}", "chunk_size": dataset.chunk_size,
                 "hash_seed": index.hash_seed, "stored_bytes": dataset.stored_bytes, "payload_bytes": index.payload_bytes,
                 "attributes": attributes, "fields": fields}
        for name, value in found.items():
            self.same(f"{what}: {name}", value, facts[name])
        for name, names in facts.get("categories", {}).items():
            self.same(f"{what}: categories of {name}", dataset.categories(name), names)

    def check_samples(self, what, case, dataset, fails):
        """The samples of an opened case; where it is no valid one, an error is right, too (RD-1)."""
        strict, types = case["open"] == "ok", {one["name"]: one["type"] for one in dataset.schema["attributes"]}
        for i, sample in enumerate(case["samples"][:len(dataset)]):
            key = key_bytes(sample["key"])
            actions = [("key", lambda: dataset.key(i), key),
                       ("read", lambda: shown_fields(dataset, i, sample["fields"]), sample["fields"]),
                       ("attributes", lambda: shown_attributes(dataset.attributes(i), types), sample.get("attributes", {}))]
            if key is not None and case.get("lookups") != "any":
                actions.append(("find", lambda: dataset.find(key), i))
            for action, ask, expected in actions:
                result, found = result_of(ask)
                if (action, i) in fails or action == "find" and ("find", key.hex()) in fails:
                    self.same(f"{what}: {action} of sample {i}", result, "damaged")
                elif result == "ok" and (action == "read" or case.get("lookups") != "any"):
                    self.same(f"{what}: {action} of sample {i}", found, expected)
                elif strict and case.get("lookups") != "any":
                    self.same(f"{what}: {action} of sample {i}: {found}", result, "ok")

    def check_verify(self, what, case, path, options):
        """This reader's verify finds what an opener or a reader finds, not all that a verifier has to."""
        result, found = result_of(lambda: list(reader.open(path, **options).verify()))
        result = "damaged" if result == "ok" and found else result
        allowed = listed(case["verify"])
        if case.get("found_by") == "verifier" or "newer" in allowed:
            allowed = ["ok", "damaged", *allowed]
        if result not in allowed:
            self.same(f"{what}: verify: {found}", result, allowed)

    # ---- orders.json ----

    def opened(self, line):
        key = (*line["members"], line.get("generation"))
        if key not in self.open_cases:
            paths = [self.root / path for path in line["members"]]
            self.open_cases[key] = reader.open_all(paths, line.get("generation"))
        return self.open_cases[key]

    def order(self, line, **more):
        dataset = self.opened(line)
        subset = dataset.subset(line["subset"]) if "subset" in line else None
        options = {name: line[name] for name in ("seed", "epoch", "lanes", "group", "window") if name in line}
        return dataset.order(line["order"], subset=subset, **options, **more)

    def check_orders(self, document):
        for line in document["orders"]:
            result, order = result_of(lambda: self.order(line))
            expect, what = line["expect"], short(line)
            if result != "ok":
                self.same(f"{what}: {order}", result, "ok")
                continue
            self.same(f"{what}: order, lanes, group", [order.name, order.lanes, order.begin["group"], order.begin["subset"]],
                      [expect["order"], expect["lanes"], expect["group"], expect["subset_hash"]])
            self.same(f"{what}: ordinals", list(order), expect["ordinals"])
        for line in document["batches"]:
            order = self.order(line)
            for rank, expected in enumerate(line["ranks"]):
                dealt = order.batches(line["world"], rank, line["batch_size"], line["tail"], line["begin"])
                self.same(f"{short(line)}: rank {rank}", list(dealt), expected)
                positions = [json.loads(dealt.state_after(k))["position"] for k in range(len(dealt) + 1)]
                self.same(f"{short(line)}: positions", positions, line["positions_after"])
        for line in document["mixing"]:
            self.check_mixing(line)
        for line in document["subsets"]:
            text = line["expression"] + " " * line.get("spaces", 0)
            result, found = result_of(lambda: self.opened(line).subset(text))
            found = found if result == "ok" else None
            self.same(f"subset {short(line)}", found, line.get("ordinals"))
            if found is not None:
                self.same(f"hash {short(line)}", f"{reader.subset_hash(found, len(self.opened(line))):016x}", line["hash"])
        for line in document["states"]:
            text = line["state"] + " " * line.get("spaces", 0)
            result, found = result_of(lambda: (order := self.order(line, state=text), order.begin["position"]))
            result = result if result in ("ok", "newer") else "error"
            self.same(f"state: {line['about']}: {found}", result, line["expect"]["result"])
            if result == "ok":
                self.same(f"state: {line['about']}", list(found[0])[found[1]:], line["expect"].get("ordinals"))
        for line in document["refused"]:
            result, found = result_of(lambda: self.refused(line))
            self.same(f"refused: {line['about']}: {found}", result != "ok", True)
        self.check_vectors(document["vectors"])

    def refused(self, line):
        order = self.order(line)
        if "world" in line:
            return order.batches(line["world"], 0, line["batch_size"], line["tail"], line["begin"])
        return order

    def check_mixing(self, line):
        dataset, order = self.opened(line), self.order(line)
        found = order.mixing(line["batch_size"], lambda ordinal: dataset.attributes(ordinal).get(line["class"]))
        for (batches, of), values in found.items():
            close = [abs(a - b) <= 1e-9 * max(1, b) for a, b in zip(values, line["mixing"][f"{of}_{batches}"])]
            self.same(f"mixing {short(line)}: {of} of {batches}: {values}, {line['mixing']}", all(close), True)

    def check_vectors(self, vectors):
        for name, ask in ("mix", lambda x: f"{reader.mix(int(x, 16)):016x}"), ("key", lambda parts: f"{reader.key(*parts):016x}"), (
                "below", reader.below), ("shuffled", reader.shuffled):
            for *arguments, expected in vectors[name]:
                self.same(name, ask(*arguments), expected)
        for text, expected, _ in vectors["key_hash"]:
            self.same("key_hash", f"{reader.xxh64(bytes.fromhex(text), 0):016x}", expected)


def listed(value):
    return value if isinstance(value, list) else [value]


def short(line):
    hidden = ("expect", "ordinals", "ranks", "positions_after", "mixing", "hash")
    return json.dumps({name: value for name, value in line.items() if name not in hidden})[:200]


def result_of(ask):
    """The class of an answer, as expected.json names it, and the answer or the sentence."""
    try:
        return "ok", ask()
    except reader.GrainError as error:
        text = str(error)
        if isinstance(error, reader.Newer):
            return "newer", text
        if "not a grainstore" in text or "not a manifest of grainstore" in text:
            return "not_grainstore", text
        if "cannot be opened" in text:
            return "missing", text
        return "refused" if "outside its parent" in text else "damaged", text


def key_bytes(key):
    return bytes.fromhex(key[0]) * key[1] if isinstance(key, list) else key if key is None else bytes.fromhex(key)


def shown_attributes(attributes, types):
    found = {}
    for name, value in attributes.items():
        if isinstance(value, str) and types[name] != "category":  # of an unknown type
            value = {"hex": value}
        elif value is not None and types[name] == "bfloat16":
            value = {"bits": struct.pack("<f", value)[:1:-1].hex()}
        elif value is not None and types[name] in FLOATS:
            value = {"bits": struct.pack("<" + FLOATS[types[name]], value)[::-1].hex()}
        found[name] = value
    return found


def shown_fields(dataset, ordinal, expected):
    found = {}
    if any(one and "crc32" in one for one in expected.values()):  # too long to read here
        entry = dataset.entry(ordinal)
        return {name: {"len": entry.stored_len, "crc32": f"{entry.crc:08x}"} for name in expected}
    for name, value in dataset.fields(ordinal).items():
        if value is None or len(value) <= 32:
            found[name] = None if value is None else {"hex": value.hex()}
        else:
            found[name] = {"len": len(value), "xxh64": f"{reader.xxh64(value, 0):016x}"}
    return found


def main(root):
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(root, pathlib.Path(folder))
        for case in json.loads((root / "expected.json").read_text())["cases"]:
            checker.check(case)
        checker.check_orders(json.loads((root / "orders.json").read_text()))
    print(*checker.wrong, sep="\n", end="\n" * bool(checker.wrong))
    print(f"{checker.count} answers, {len(checker.wrong)} wrong", file=sys.stderr)
    return 1 if checker.wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
