"""TFRecord files that TensorFlow writes, against what TensorFlow reads from them."""

import os
import pathlib
import struct
import tempfile
import unittest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from support import dataset, run

COMPRESSIONS = ["", "GZIP", "ZLIB"]


def as_bytes(*values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def as_ints(*values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def as_floats(*values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def example(**features):
    return tf.train.Example(features=tf.train.Features(feature=features))


def imagenet(number):
    names = {
        "image/encoded": as_bytes(b"\xff\xd8" + bytes([number % 256]) * (number * 13 % 700)),
        "image/class/label": as_ints(number * 7 % 1000 + 1),
        "image/filename": as_bytes(b"n%08d.JPEG" % number),
        "image/colorspace": as_bytes(b"RGB"),
        "image/object/bbox/xmin": as_floats(*[0.25] * (number % 3)),
    }
    return example(**names)


def mixed(number):
    """Every kind of value; every other record lacks two features."""
    features = {
        "text": as_bytes(b"text %d" % number),
        "empty": as_bytes(b""),
        "count": as_ints(-number),
        "scale": as_floats(number / 3),
        "box": as_floats(number, 1, 2, 3),
        "ids": as_ints(-1, number << 40, 5),
        "words": as_ints(*range(number % 4)),
    }
    if number % 2:
        features["sometimes"] = as_bytes(b"here")
        features["rank"] = as_ints(number)
    return example(**features)


def field(path, ordinal, name):
    """One field of a sample; `None` where the sample lacks it."""
    got = run("get", path, "--ordinal", ordinal, "--field", name, check=False)
    assert got.returncode in (0, 1), got.stderr
    return got.stdout if got.returncode == 0 else None


def one(feature):
    """The only value of a feature; `None` where it is missing."""
    kind = feature.WhichOneof("kind")
    return getattr(feature, kind).value[0] if kind else None


class TfRecord(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.count = 0

    def write(self, examples, compression=""):
        self.count += 1
        path = self.folder / f"data-{self.count:05}.tfrecord"
        with tf.io.TFRecordWriter(str(path), compression) as writer:
            for record in examples:
                writer.write(record if isinstance(record, bytes) else record.SerializeToString())
        return path

    def read(self, paths, compression=""):
        records = tf.data.TFRecordDataset([str(path) for path in paths], compression)
        return [record.numpy() for record in records]

    def convert(self, paths, *options):
        self.count += 1
        packed = self.folder / f"{self.count}.grain"
        run("convert", *paths, packed, "--from", "tfrecord", "--order", "source", *options)
        return packed

    def refused(self, paths, *options):
        result = run("convert", *paths, self.folder / "no.grain", "--from", "tfrecord", *options, check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertFalse((self.folder / "no.grain").exists())
        return result.stderr.decode()

    def test_raw_records_are_what_tensorflow_reads(self):
        records = [b"", b"x", bytes(range(256)) * 1000, b"not an Example"]
        for compression in COMPRESSIONS:
            path = self.write(records, compression)
            rows = dataset(self.convert([path], "--raw"))
            self.assertEqual([row["payload"] for row in rows], self.read([path], compression))

    def test_imagenet_is_recognised_by_itself(self):
        for compression in COMPRESSIONS:
            paths = [self.write(map(imagenet, range(part * 20, part * 20 + 20)), compression) for part in range(3)]
            expected = [tf.train.Example.FromString(record).features.feature for record in self.read(paths, compression)]
            packed = self.convert(paths)
            rows = dataset(packed)
            self.assertEqual(len(rows), 60)
            for row, features in zip(rows, expected):
                self.assertEqual(row["key"], one(features["image/filename"]))
                self.assertEqual(field(packed, row["ordinal"], "image"), one(features["image/encoded"]))
                self.assertEqual(field(packed, row["ordinal"], "image/colorspace"), b"RGB")
                xmin = features["image/object/bbox/xmin"].float_list.value
                found = field(packed, row["ordinal"], "image/object/bbox/xmin")
                self.assertEqual(found, struct.pack(f"<{len(xmin)}f", *xmin))
                self.assertEqual(row["attributes"], {"label": one(features["image/class/label"])})

    def test_every_kind_of_value_comes_back(self):
        for compression in COMPRESSIONS:
            path = self.write(map(mixed, range(12)), compression)
            packed = self.convert([path])
            for row, record in zip(dataset(packed), self.read([path], compression), strict=True):
                features = tf.train.Example.FromString(record).features.feature
                self.check_row(packed, row, features)

    def check_row(self, packed, row, features):
        attributes, at = row["attributes"], row["ordinal"]
        self.assertEqual(list(attributes), ["count", "rank", "scale"])
        self.assertEqual(attributes["count"], one(features["count"]))
        self.assertEqual(attributes["rank"], one(features["rank"]))
        self.assertEqual(struct.pack("<f", attributes["scale"]), struct.pack("<f", one(features["scale"])))
        for name in ["text", "empty", "sometimes"]:
            self.assertEqual(field(packed, at, name), one(features[name]), name)
        for name, kind, code in [("box", "float_list", "f"), ("ids", "int64_list", "q"), ("words", "int64_list", "q")]:
            values = getattr(features[name], kind).value
            self.assertEqual(field(packed, at, name), struct.pack(f"<{len(values)}{code}", *values), name)

    def test_a_map_chooses_key_fields_and_attributes(self):
        path = self.write(map(mixed, range(6)))
        rows = dataset(self.convert([path], "--map", "key=text,box,n=count"))
        self.assertEqual([row["key"] for row in rows], [b"text %d" % number for number in range(6)])
        self.assertEqual([row["attributes"] for row in rows], [{"n": -number} for number in range(6)])
        self.assertEqual([row["payload"] for row in rows], [struct.pack("<4f", number, 1, 2, 3) for number in range(6)])

    def test_many_shards_keep_their_order_and_empty_ones_are_legal(self):
        paths = [self.write([example(n=as_bytes(b"%d" % part))] if part % 5 else []) for part in range(60)]
        rows = dataset(self.convert(paths))
        self.assertEqual([row["payload"] for row in rows], [b"%d" % part for part in range(60) if part % 5])

    def test_what_cannot_be_taken_is_refused_with_the_way_out(self):
        sequence = tf.train.SequenceExample()
        sequence.feature_lists.feature_list["words"].feature.add().int64_list.value.append(1)
        self.assertIn("--raw", self.refused([self.write([sequence])]))
        self.assertIn("--raw", self.refused([self.write([b"no Example"])]))
        path = self.write(map(mixed, range(3)))
        self.assertIn("sometimes", self.refused([path], "--map", "x=nothing"))
        cut = self.folder / "cut.tfrecord"
        cut.write_bytes(path.read_bytes()[:-1])
        self.assertIn("truncated, or not a TFRecord file", self.refused([cut]))


if __name__ == "__main__":
    unittest.main()
