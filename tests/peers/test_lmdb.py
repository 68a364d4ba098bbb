"""LMDB environments of py-lmdb, converted and compared with what py-lmdb reads."""

import os
import random
import tempfile
import unittest

import lmdb
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from support import dataset, listed, run


def datum_class():
    """Caffe's Datum."""
    file = descriptor_pb2.FileDescriptorProto(name="datum.proto", package="caffe", syntax="proto2")
    message = file.message_type.add(name="Datum")
    kind = descriptor_pb2.FieldDescriptorProto
    fields = [("channels", kind.TYPE_INT32), ("height", kind.TYPE_INT32), ("width", kind.TYPE_INT32)]
    fields += [("data", kind.TYPE_BYTES), ("label", kind.TYPE_INT32), ("float_data", kind.TYPE_FLOAT)]
    fields += [("encoded", kind.TYPE_BOOL)]
    for number, (name, type_) in enumerate(fields, 1):
        label = kind.LABEL_REPEATED if name == "float_data" else kind.LABEL_OPTIONAL
        message.field.add(name=name, number=number, type=type_, label=label)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("caffe.Datum"))


class Lmdb(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.source = os.path.join(folder.name, "source")
        self.result = os.path.join(folder.name, "result.grain")

    def environment(self, **options):
        environment = lmdb.open(self.source, **{"map_size": 1 << 30, "max_dbs": 4, **options})
        self.addCleanup(environment.close)
        return environment

    def convert(self, *options, check=True):
        return run("convert", self.source, self.result, "--from", "lmdb", "--order", "source", *options, check=check)

    def check(self, environment, database=None):
        with environment.begin(db=database) as transaction:
            expected = list(transaction.cursor())
        found = [(row["key"], row["payload"]) for row in dataset(self.result)]
        self.assertEqual(found, expected)

    def changes(self, environment, seed):
        """Many commits that put and delete values of all lengths."""
        numbers = random.Random(seed)
        for _ in range(150):
            with environment.begin(write=True) as transaction:
                for _ in range(numbers.randrange(6)):
                    key = b"%03d" % numbers.randrange(60)
                    if numbers.random() < 0.5:
                        transaction.put(key, numbers.randbytes(numbers.choice([0, 1, 10, 2000, 4080, 4081, 60000])))
                    else:
                        transaction.delete(key)

    def test_values_of_all_lengths_after_many_commits_and_deletes(self):
        environment = self.environment()
        self.changes(environment, 1)
        self.convert()
        self.check(environment)

    def test_a_file_by_itself(self):
        environment = self.environment(subdir=False)
        self.changes(environment, 2)
        self.convert()
        self.check(environment)

    def test_an_environment_that_was_written_through_its_map(self):
        environment = self.environment(writemap=True, map_size=1 << 26)
        self.changes(environment, 3)
        self.convert()
        self.check(environment)

    def test_a_compact_copy(self):
        environment = self.environment()
        self.changes(environment, 4)
        copy = self.source + ".copy"
        os.mkdir(copy)
        environment.copy(copy, compact=True)
        self.source = copy
        self.convert()
        self.check(environment)

    def test_named_databases_and_values_beside_them(self):
        environment = self.environment()
        train = environment.open_db(b"train")
        with environment.begin(write=True) as transaction:
            transaction.put(b"a", b"1", db=train)
        refused = self.convert(check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(b"train", refused.stderr)
        self.convert("--database", "train")
        self.check(environment, train)

    def test_a_hundred_thousand_keys(self):
        environment = self.environment()
        with environment.begin(write=True) as transaction:
            for number in range(100_000):
                transaction.put(b"%08d" % number, b"v" * (number % 50), append=True)
        self.convert()
        with environment.begin() as transaction:
            expected = [(key, len(value)) for key, value in transaction.cursor()]
        self.assertEqual([(row["key"], row["payload_len"]) for row in listed(self.result)], expected)

    def test_datum(self):
        datum, environment, numbers = datum_class(), self.environment(), random.Random(5)
        made = []
        for number in range(20):
            pixels = numbers.randbytes(3 * 32 * (number + 1))
            made.append(datum(channels=3, height=32, width=number + 1, data=pixels, label=number - 3))
        with environment.begin(write=True) as transaction:
            for number, one in enumerate(made):
                transaction.put(b"%08d" % number, one.SerializeToString())
        self.convert()
        rows = dataset(self.result)
        self.assertEqual([row["payload"] for row in rows], [one.data for one in made])
        self.assertEqual([row["attributes"]["label"] for row in rows], [one.label for one in made])
        self.assertEqual([row["attributes"]["width"] for row in rows], [one.width for one in made])

    def test_keys_that_belong_together(self):
        environment = self.environment()
        with environment.begin(write=True) as transaction:
            for number in range(1, 201):
                transaction.put(b"image-%09d" % number, b"\xff\xd8\xff" + bytes(number * 30))
                transaction.put(b"label-%09d" % number, b"word%d" % number)
            transaction.put(b"num-samples", b"200")
        self.convert("--map", "image=image-*,label=label-*")
        rows = dataset(self.result)
        self.assertEqual([row["key"] for row in rows], [b"%09d" % number for number in range(1, 201)])
        for number, row in enumerate(rows, 1):
            self.assertEqual(row["payload"], b"\xff\xd8\xff" + bytes(number * 30) + b"word%d" % number)


if __name__ == "__main__":
    unittest.main()
