"""Other people's libraries read what `grainstore export` writes, and get the samples that were packed.

Needs tensorflow, lmdb, webdataset, pyarrow and datasets, and GRAINSTORE, the path of the command. A library that is not
there skips its test.
"""

import filecmp
import importlib
import json
import pathlib
import random
import tempfile
import unittest

from support import listed, run

CLASSES = ["cat", "dog", "emu"]


def library(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise unittest.SkipTest(f"{name} is not installed") from error


def fingerprint(path):
    return json.loads(run("inspect", path, "--json").stdout)["fingerprint"]


def make_pictures(root, count=60):
    """A folder of classes; returns what is in it, by path."""
    draw = random.Random(7)
    files = {}
    for number in range(count):
        path = f"{CLASSES[number % 3]}/{number:04}.jpg"
        files[path] = draw.randbytes(draw.randrange(1, 40_000))
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(files[path])
    return files


class Export(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.files = make_pictures(cls.root / "pictures")
        cls.dataset = cls.root / "pictures.grain"
        run("convert", cls.root / "pictures", cls.dataset)
        cls.keys = [row["key"].decode() for row in listed(cls.dataset)]

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def export(self, name, to, *flags):
        out = self.root / name
        run("export", self.dataset, out, "--to", to, *flags)
        return out

    def label(self, key):
        return CLASSES.index(key.split("/")[0])

    def test_a_folder_comes_back_as_it_was(self):
        out = self.export("folder", "folder")
        self.assert_same(self.root / "pictures", out)
        again = self.root / "again.grain"
        run("convert", out, again)
        self.assertEqual(fingerprint(again), fingerprint(self.dataset))

    def assert_same(self, one, other):
        compared = filecmp.dircmp(one, other)
        self.assertEqual((compared.left_only, compared.right_only), ([], []))
        same, different, odd = filecmp.cmpfiles(one, other, compared.common_files, shallow=False)
        self.assertEqual((different, odd), ([], []))
        for folder in compared.common_dirs:
            self.assert_same(one / folder, other / folder)

    def test_a_takedown_is_an_export_without_it(self):
        taken = self.keys[5]
        out = self.export("rest", "folder", "--subset", f"key != '{taken}'")
        self.assertFalse((out / taken).exists())
        self.assertEqual(sum(path.is_file() for path in out.rglob("*.jpg")), len(self.files) - 1)

    def test_tensorflow_reads_examples(self):
        tensorflow = library("tensorflow")
        out = self.export("records", "tfrecord", "--shard-size", "200K", "--jobs", "3")
        paths = sorted(map(str, out.iterdir()))
        self.assertGreater(len(paths), 3)
        feature = tensorflow.io.FixedLenFeature
        spec = {name: feature([], kind) for name, kind in
                [("key", tensorflow.string), ("image", tensorflow.string), ("label", tensorflow.int64)]}
        keys = []
        for record in tensorflow.data.TFRecordDataset(paths):
            sample = tensorflow.io.parse_single_example(record, spec)
            key = sample["key"].numpy().decode()
            self.assertEqual(sample["image"].numpy(), self.files[key])
            self.assertEqual(sample["label"].numpy(), self.label(key))
            keys.append(key)
        self.assertEqual(keys, self.keys)

    def test_lists_of_numbers_of_tensorflow_come_out_as_they_went_in(self):
        tensorflow = library("tensorflow")
        train = tensorflow.train
        rows = {f"k{number}": ([number + 0.5, -1.0, 0.0], [number, -number, 1 << 40]) for number in range(20)}
        source = self.root / "numbers.tfrecord"
        with tensorflow.io.TFRecordWriter(str(source)) as writer:
            for key, (floats, ints) in rows.items():
                features = {
                    "key": train.Feature(bytes_list=train.BytesList(value=[key.encode()])),
                    "emb": train.Feature(float_list=train.FloatList(value=floats)),
                    "ids": train.Feature(int64_list=train.Int64List(value=ints)),
                }
                writer.write(train.Example(features=train.Features(feature=features)).SerializeToString())
        run("convert", source, self.root / "numbers.grain", "--order", "source")
        run("export", self.root / "numbers.grain", self.root / "back.tfrecord", "--to", "tfrecord")
        spec = {"key": tensorflow.io.FixedLenFeature([], tensorflow.string),
                "emb": tensorflow.io.FixedLenFeature([3], tensorflow.float32),
                "ids": tensorflow.io.FixedLenFeature([3], tensorflow.int64)}
        found = {}
        for record in tensorflow.data.TFRecordDataset(str(self.root / "back.tfrecord")):
            sample = tensorflow.io.parse_single_example(record, spec)
            found[sample["key"].numpy().decode()] = (sample["emb"].numpy().tolist(), sample["ids"].numpy().tolist())
        self.assertEqual(found, rows)
        run("convert", self.root / "back.tfrecord", self.root / "again.numbers.grain", "--order", "source")
        self.assertEqual(fingerprint(self.root / "again.numbers.grain"), fingerprint(self.root / "numbers.grain"))

    def test_a_dataset_without_keys_has_its_rows_in_parquet(self):
        parquet = library("pyarrow.parquet")
        run("convert", self.export("raw", "tfrecord"), self.root / "raw.grain", "--map", "image,label")
        run("export", self.root / "raw.grain", self.root / "raw.parquet", "--to", "parquet")
        table = parquet.read_table(self.root / "raw.parquet")
        self.assertEqual(table.column_names, ["label", "image"])
        pictures = dict(zip(table["image"].to_pylist(), table["label"].to_pylist()))
        self.assertEqual(pictures, {picture: self.label(path) for path, picture in self.files.items()})

    def test_webdataset_reads_tars(self):
        webdataset = library("webdataset")
        out = self.export("tars", "tar", "--shard-size", "300K")
        paths = sorted(map(str, out.iterdir()))
        samples = list(webdataset.WebDataset(paths, shardshuffle=False))
        self.assertEqual([sample["__key__"] + ".jpg" for sample in samples], self.keys)
        for sample, key in zip(samples, self.keys):
            self.assertEqual((sample["jpg"], int(sample["cls"])), (self.files[key], self.label(key)))

    def test_py_lmdb_reads_values(self):
        lmdb = library("lmdb")
        plain = self.root / "plain"
        for path, content in self.files.items():
            flat = plain / path.replace("/", "-")
            flat.parent.mkdir(exist_ok=True)
            flat.write_bytes(content)
        run("convert", plain, self.root / "plain.grain")
        run("export", self.root / "plain.grain", self.root / "lmdb", "--to", "lmdb")
        with lmdb.open(str(self.root / "lmdb"), readonly=True, lock=False) as environment:
            with environment.begin() as transaction:
                found = {key.decode(): value for key, value in transaction.cursor()}
        self.assertEqual(found, {path.replace("/", "-"): content for path, content in self.files.items()})

    def test_py_lmdb_and_tensorflow_read_examples_in_lmdb(self):
        lmdb, tensorflow = library("lmdb"), library("tensorflow")
        out = self.export("examples", "lmdb")
        with lmdb.open(str(out), readonly=True, lock=False) as environment, environment.begin() as transaction:
            found = {key.decode(): tensorflow.train.Example.FromString(value) for key, value in transaction.cursor()}
        self.assertEqual(sorted(found), sorted(self.files))
        for key, example in found.items():
            features = example.features.feature
            self.assertEqual(features["image"].bytes_list.value[0], self.files[key])
            self.assertEqual(features["label"].int64_list.value[0], self.label(key))
            self.assertNotIn("key", features)

    def test_pyarrow_reads_columns(self):
        parquet = library("pyarrow.parquet")
        out = self.export("rows.parquet", "parquet")
        table = parquet.read_table(out)
        self.assertEqual({name: str(kind) for name, kind in zip(table.schema.names, table.schema.types)},
                         {"key": "string", "label": "int64", "image": "binary"})
        self.assertEqual(table["key"].to_pylist(), self.keys)
        self.assertEqual(table["label"].to_pylist(), list(map(self.label, self.keys)))
        self.assertEqual(table["image"].to_pylist(), [self.files[key] for key in self.keys])

    def test_datasets_knows_the_classes(self):
        datasets = library("datasets")
        out = self.export("hub", "parquet", "--shard-size", "200K")
        paths = sorted(map(str, out.iterdir()))
        loaded = datasets.load_dataset("parquet", data_files=paths, split="train", cache_dir=str(self.root / "cache"))
        self.assertEqual(loaded.features["label"].names, CLASSES)
        self.assertEqual(loaded["key"][:], self.keys)
        self.assertEqual(loaded[3]["image"], self.files[self.keys[3]])


if __name__ == "__main__":
    unittest.main()
