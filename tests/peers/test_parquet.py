"""Parquet files of pyarrow and Hugging Face's datasets, converted and compared with what pyarrow reads."""

import json
import os
import tempfile
import unittest

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import ClassLabel, Dataset, Features, Image, Sequence, Value
from datasets.table import InMemoryTable

from support import dataset, run

ROWS = 100


def table():
    """All integer widths, floats, truth values, text and bytes, each column with a null of its own."""

    def column(number, value):
        return [None if row == number else value(row) for row in range(ROWS)]

    columns = {"key": pa.array([f"k{row:03}" for row in range(ROWS)])}
    for number, bits in enumerate((8, 16, 32, 64)):
        top = 2 ** (bits - 1) - 1
        columns[f"i{bits}"] = pa.array(
            column(number, lambda row: -top - 1 if row == 50 else top if row == 51 else row), getattr(pa, f"int{bits}")()
        )
        columns[f"u{bits}"] = pa.array(
            column(number + 10, lambda row: 2 * top + 1 if row == 50 else row), getattr(pa, f"uint{bits}")()
        )
    columns["f32"] = pa.array(column(20, lambda row: row / 4), pa.float32())
    columns["f64"] = pa.array(column(21, lambda row: row / 3), pa.float64())
    columns["yes"] = pa.array(column(22, lambda row: row % 3 == 0))
    columns["text"] = pa.array(column(23, lambda row: "é" * (row % 7)))
    columns["data"] = pa.array(column(24, lambda row: bytes([row]) * (row * 10)), pa.binary())
    return pa.table(columns)


class Parquet(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = os.path.join(folder.name, "source.parquet")
        self.result = os.path.join(folder.name, "result.grain")

    def convert(self, *options, check=True):
        return run("convert", self.source, self.result, "--from", "parquet", "--order", "source", *options, check=check)

    def check(self, expected, fields):
        rows = dataset(self.result)
        self.assertEqual([row["key"].decode() for row in rows], expected["key"].to_pylist())
        payloads = [b"".join(as_bytes(expected[name][number].as_py()) for name in fields) for number in range(len(rows))]
        self.assertEqual([row["payload"] for row in rows], payloads)
        for name in set(expected.column_names) - {"key", *fields}:
            found = [row["attributes"][name] for row in rows]
            self.assertEqual(found, expected[name].to_pylist(), name)

    def test_every_codec_page_version_and_encoding(self):
        ways = [{"compression": codec} for codec in ("none", "snappy", "gzip", "zstd", "lz4")]
        ways += [{"data_page_version": "2.0"}, {"use_dictionary": False}, {"row_group_size": 7}]
        ways += [{"use_dictionary": False, "column_encoding": {"key": "DELTA_BYTE_ARRAY", "i64": "DELTA_BINARY_PACKED"}}]
        ways += [{"use_dictionary": False, "column_encoding": {"data": "DELTA_LENGTH_BYTE_ARRAY"}}]
        ways += [{"data_page_size": 64, "write_page_checksum": True}]
        for way in ways:
            with self.subTest(way):
                pq.write_table(table(), self.source, **way)
                self.convert("--overwrite")
                self.check(table(), ["text", "data"])

    def test_brotli_is_refused_with_a_sentence(self):
        pq.write_table(table(), self.source, compression="brotli")
        self.assertIn(b"compressed with brotli, which is not built in", self.convert(check=False).stderr)

    def test_lists_of_numbers_are_arrays(self):
        vectors = [[row, row / 2, -1.5] for row in range(ROWS)]
        columns = {
            "data": pa.array([b"x"] * ROWS),
            "fixed": pa.array(vectors, pa.list_(pa.float32(), 3)),
            "open": pa.array([None if row == 7 else list(range(row % 5)) for row in range(ROWS)], pa.list_(pa.int16())),
        }
        for way in [{}, {"data_page_version": "2.0"}, {"row_group_size": 7}, {"use_compliant_nested_type": False}]:
            pq.write_table(pa.table(columns), self.source, **way)
            self.convert("--overwrite")
            for row in range(0, ROWS, 9):
                got = run("get", self.result, "--ordinal", row, "--field", "fixed").stdout
                self.assertEqual(got, pa.array(vectors[row], pa.float32()).buffers()[1].to_pybytes()[:12])
                got = run("get", self.result, "--ordinal", row, "--field", "open").stdout
                self.assertEqual(got, b"".join(number.to_bytes(2, "little") for number in range(row % 5)))
            document = json.dumps(json.loads(run("inspect", self.result, "--json").stdout))
            self.assertIn("float32[3]", document)
            self.assertIn("int16[]", document)

    def test_lists_of_lists_are_refused_and_may_be_omitted(self):
        pq.write_table(pa.table({"data": [b"x", b"yy"], "boxes": [[[1, 2]], []]}), self.source)
        self.assertIn(b"is a list of lists, which a dataset cannot hold", self.convert(check=False).stderr)
        self.convert("--map", "data")
        self.assertEqual([row["payload"] for row in dataset(self.result)], [b"x", b"yy"])

    def test_pictures_of_hugging_face(self):
        features = Features({"image": Image(decode=False), "label": ClassLabel(names=["cat", "dog"])})
        pictures = [{"bytes": bytes([number]) * 1000, "path": f"{number}.png"} for number in range(20)]
        kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
        columns = [pa.array(pictures, kind), pa.array([number % 2 for number in range(20)], pa.int64())]
        Dataset(InMemoryTable(pa.Table.from_arrays(columns, schema=features.arrow_schema))).to_parquet(self.source)
        self.convert()
        rows = dataset(self.result)
        self.assertEqual([row["key"].decode() for row in rows], [picture["path"] for picture in pictures])
        self.assertEqual([row["payload"] for row in rows], [picture["bytes"] for picture in pictures])
        self.assertEqual([row["attributes"]["label"] for row in rows], [number % 2 for number in range(20)])
        info = json.loads(run("inspect", self.result, "--json").stdout)
        self.assertIn('"class_names": ["cat", "dog"]', json.dumps(info))

    def test_a_column_key_that_repeats_is_said_to_be_none(self):
        pq.write_table(pa.table({"key": ["a", "b", "a"], "data": [b"1", b"2", b"3"]}), self.source)
        self.assertIn('column "key" is not the key', self.convert().stderr.decode())
        self.assertEqual(len(dataset(self.result)), 3)
        rows = 5000
        pq.write_table(pa.table({"key": [f"k{row % (rows - 1)}" for row in range(rows)], "data": [b"x"] * rows}), self.source)
        again = run("convert", self.source, self.result, "--overwrite", check=False)
        self.assertIn(b"--exclude NAME packs all samples without keys", again.stderr)
        self.assertEqual(run("convert", self.source, self.result, "--overwrite", "--exclude", "key").returncode, 0)
        self.assertEqual(json.loads(run("inspect", self.result, "--json").stdout)["samples"], rows)

    def test_a_class_beside_a_label_does_not_name_its_numbers(self):
        label, kind = ClassLabel(names=["cat", "dog"]), ClassLabel(names=["red", "blue"])
        features = Features({"image": Image(decode=False), "label": label, "class": kind, "color": kind})
        picture = pa.array([{"bytes": b"x", "path": "x.png"}], pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
        numbers = [pa.array([number], pa.int64()) for number in (0, 1, 1)]
        Dataset(InMemoryTable(pa.Table.from_arrays([picture, *numbers], schema=features.arrow_schema))).to_parquet(self.source)
        said = self.convert().stderr.decode()
        self.assertIn('the names of "class" are left out', said)
        info = json.loads(run("inspect", self.result, "--json").stdout)
        self.assertIn('"class_names": ["cat", "dog"]', json.dumps(info))
        self.assertIn('"color_names": ["red", "blue"]', json.dumps(info))

    def test_names_of_numbers_in_structs_are_kept_and_those_in_lists_noted(self):
        kind = ClassLabel(names=["red", "blue"])
        features = Features({"data": Value("binary"), "box": {"kind": kind}, "tags": Sequence(kind)})
        rows = {"data": [b"x", b"y"], "box": [{"kind": 1}, {"kind": 0}], "tags": [[0, 1], []]}
        Dataset.from_dict(rows, features=features).to_parquet(self.source)
        self.assertIn('the names of "tags" are left out', self.convert().stderr.decode())
        info = json.loads(run("inspect", self.result, "--json").stdout)
        self.assertEqual(info["user_metadata"], {"box.kind_names": ["red", "blue"]})
        self.assertEqual([row["attributes"]["box.kind"] for row in dataset(self.result)], [1, 0])


def as_bytes(value):
    return b"" if value is None else value.encode() if isinstance(value, str) else value


if __name__ == "__main__":
    unittest.main()
