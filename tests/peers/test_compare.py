"""The comparison with other libraries runs from end to end, on a few samples, and notices wrong contents."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPARE = Path(__file__).parents[2] / "benches/compare"
sys.path.append(str(COMPARE))
from samples import TINY, Numbers, WrongContents, mixing  # noqa: E402

# On a disk: cold is nothing that a file system in memory can be.
FOLDER = Path(__file__).parents[2] / "target"
CONTESTANTS = ("files", "LMDB", "grainstore")
SAMPLES = 1024


def compare(folder, *more):
    """Runs the comparison as a user does, in this environment."""
    return subprocess.run(
        [sys.executable, COMPARE / "compare.py", "--sizes", "512", "--samples", str(SAMPLES), "--rounds", "1", *more],
        cwd=folder,
        env=os.environ | {"GRAINSTORE_BENCH_DIR": str(folder)},
        capture_output=True,
        text=True,
    )


class Comparison(unittest.TestCase):
    def test_everybody_is_measured_and_written_up(self):
        with tempfile.TemporaryDirectory(dir=FOLDER) as name:
            folder = Path(name)
            more = ("--only", ",".join(CONTESTANTS), "--memory", "cold,warm", "--only-files", "--docs", folder)
            done = compare(folder, *more)
            self.assertEqual(done.returncode, 0, done.stderr)
            results = json.loads((folder / "results.json").read_text())
            page = (folder / "comparison.md").read_text()
            charts = sorted(path.name for path in folder.glob("*.svg"))
            # Without --keep nothing of the data stays.
            self.assertEqual([path for path in (folder / "compare").iterdir()], [])
        cells = {(cell["contestant"], cell["kind"], cell["memory"]): cell for cell in results["cells"]}
        for contestant in CONTESTANTS:
            self.assertGreaterEqual(cells[contestant, "write", "cold"]["payload_bytes"], SAMPLES * 512)
            for memory in ("cold", "warm"):
                for kind in ("get", "batch", "epoch"):
                    cell = cells[contestant, kind, memory]
                    self.assertEqual(cell.get("samples"), SAMPLES, cell)
                    self.assertGreater(cell["samples_per_s"], 0)
                    self.assertGreater(cell["open_s"], 0)
            self.assertEqual(cells[contestant, "epoch", "warm"]["delivered_bytes"], SAMPLES * 512)
            # In the stored order it would be 64.
            self.assertGreater(cells[contestant, "epoch", "warm"]["mixing"], 80)
            self.assertIn(contestant, page)
        self.assertEqual(charts, ["comparison-cold.svg", "comparison-warm.svg"])

    def test_an_unknown_contestant_is_refused_with_the_known_ones(self):
        with tempfile.TemporaryDirectory() as name:
            done = compare(Path(name), "--only", "nobody")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nobody: no such contestant; there are: ", done.stderr)


class Contents(unittest.TestCase):
    shape = TINY.shrunk(512)

    def test_a_changed_byte_is_noticed(self):
        sample = bytearray(self.shape.sample(7))
        self.assertEqual(self.shape.check(bytes(sample)), 7)
        for position in (0, 9, 511):
            sample[position] ^= 1
            with self.assertRaises(WrongContents):
                self.shape.check(bytes(sample))
            sample[position] ^= 1

    def test_a_sample_that_comes_twice_or_never_is_noticed(self):
        samples = list(self.shape)
        for epoch in (samples[:-1] + samples[:1], samples + samples[:1], samples[:-1]):
            numbers = Numbers(self.shape)
            numbers.add(epoch)
            with self.assertRaises(WrongContents):
                numbers.checked(whole=True)
        # Of an epoch that was cut off, samples may be missing.
        self.assertEqual(len(numbers.checked(whole=False)), 511)

    def test_mixing_counts_the_parts_of_the_stored_order(self):
        numbers = Numbers(self.shape)
        numbers.add(list(self.shape))
        in_order = numbers.checked(whole=True)
        # 256 neighbours of 512 samples come from 128 of 256 parts.
        self.assertEqual(mixing(in_order, 512), 128)
        # Every second sample: one of each part.
        self.assertEqual(mixing(in_order.reshape(-1, 2).T.ravel(), 512), 256)


if __name__ == "__main__":
    unittest.main()
