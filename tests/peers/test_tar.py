"""Tars that webdataset, Python's tarfile and GNU tar write, against what webdataset and tarfile read from them."""

import gzip
import io
import json
import pathlib
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import numpy
import webdataset

from support import dataset, run


def field(path, ordinal, name):
    """A field of a sample; `None` where the sample lacks it."""
    got = run("get", path, "--ordinal", ordinal, "--field", name, check=False)
    return got.stdout if got.returncode == 0 else None


def sample(number):
    """What a shard holds of one sample; every third has no caption."""
    members = {
        "__key__": f"shard/s{number:06}",
        "cls": number * 37 % 1000,
        "jpg": b"\xff\xd8" + bytes([number % 256]) * (number * 131 % 5000),
        "json": {"width": number, "score": number / 3, "ok": number % 2 == 0},
        "npy": numpy.arange(number % 7, dtype=numpy.float32),
    }
    if number % 3:
        members["txt"] = f"caption é {number}"
    return members


class Tar(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.count = 0

    def convert(self, paths, *options):
        self.count += 1
        packed = self.folder / f"{self.count}.grain"
        run("convert", *paths, packed, "--from", "tar", "--order", "source", *options)
        return packed

    def refused(self, paths):
        result = run("convert", *paths, self.folder / "no.grain", "--from", "tar", check=False)
        self.assertNotEqual(result.returncode, 0)
        self.assertFalse((self.folder / "no.grain").exists())
        return result.stderr.decode()

    def shards(self, suffix):
        pattern = str(self.folder / f"w-%03d{suffix}")
        with webdataset.ShardWriter(pattern, maxcount=40, compress=suffix.endswith("gz"), verbose=0) as writer:
            for number in range(100):
                writer.write(sample(number))
        return sorted(self.folder.glob(f"w-*{suffix}"))

    def check_shards(self, paths):
        packed = self.convert(paths)
        expected = list(webdataset.WebDataset([str(path) for path in paths], shardshuffle=False))
        self.assertEqual(len(expected), 100)
        for row, members in zip(dataset(packed), expected, strict=True):
            self.assertEqual(row["key"].decode(), members["__key__"])
            document = json.loads(members["json"])
            self.assertEqual(row["attributes"], {"label": int(members["cls"]), **document})
            for name in ["jpg", "npy", "txt"]:
                self.assertEqual(field(packed, row["ordinal"], name), members.get(name), name)

    def test_shards_are_what_webdataset_reads(self):
        self.check_shards(self.shards(".tar"))

    def test_compressed_shards_are_what_webdataset_reads(self):
        self.check_shards(self.shards(".tar.gz"))

    def names(self, len_max):
        """Names of 101 bytes and more, cut into folders so that USTAR takes them."""
        def name(length):
            base = "folder/" * ((length - 60) // 7)
            return base + "x" * (length - len(base) - 4) + ".bin"

        return [name(length) for length in range(101, len_max + 1, 7)]

    def check_members(self, path):
        with tarfile.open(path) as archive:
            expected = {member.name.removeprefix("./"): archive.extractfile(member).read() for member in archive if member.isreg()}
        rows = {row["key"].decode() + ".bin": row["payload"] for row in dataset(self.convert([path]))}
        self.assertEqual(rows, expected)
        self.assertGreater(len(rows), 10)

    def test_names_of_every_dialect_of_tarfile_are_whole(self):
        dialects = {"ustar": (tarfile.USTAR_FORMAT, 220), "gnu": (tarfile.GNU_FORMAT, 300), "pax": (tarfile.PAX_FORMAT, 300)}
        for dialect, (number, len_max) in dialects.items():
            path = self.folder / f"{dialect}.tar"
            with tarfile.open(path, "w", format=number) as archive:
                for name in self.names(len_max):
                    member = tarfile.TarInfo(name)
                    member.size = len(name)
                    member.mtime = 1.5 if dialect == "pax" else 1
                    archive.addfile(member, io.BytesIO(name.encode()))
            self.check_members(path)

    @unittest.skipUnless(shutil.which("tar"), "GNU tar is not here")
    def test_names_of_every_dialect_of_gnu_tar_are_whole(self):
        tree = self.folder / "tree"
        for name in self.names(300):
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(name.encode())
        for dialect in ["gnu", "posix", "oldgnu"]:
            path = self.folder / f"gnu-{dialect}.tar"
            subprocess.run(["tar", "-C", tree, f"--format={dialect}", "-cf", path, "."], check=True)
            self.check_members(path)
            packed = path.with_suffix(".tar.gz")
            packed.write_bytes(gzip.compress(path.read_bytes()))
            self.check_members(packed)

    def test_an_archive_that_ends_too_soon_is_refused_with_the_place(self):
        path = self.shards(".tar")[0]
        path.write_bytes(path.read_bytes()[:10_000])
        self.assertIn("at byte", self.refused([path]))
        with self.assertRaises(tarfile.ReadError):
            with tarfile.open(path) as archive:
                archive.getmembers()


if __name__ == "__main__":
    unittest.main()
