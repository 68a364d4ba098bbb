"""The programs beside the papers' figures run from end to end, on a few samples, and write their page."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPARE = Path(__file__).parents[2] / "benches/compare"
# On a disk: cold is nothing that a file system in memory can be.
FOLDER = Path(__file__).parents[2] / "target"
SAMPLES = 256


def papers(folder, *more):
    """Runs the program as a user does, in this environment."""
    return subprocess.run(
        [sys.executable, COMPARE / "papers.py", "--samples", str(SAMPLES), "--rounds", "1", "--only-files", *more],
        cwd=folder,
        env=os.environ | {"GRAINSTORE_BENCH_DIR": str(folder)},
        capture_output=True,
        text=True,
    )


class Papers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory(dir=FOLDER) as name:
            folder = Path(name)
            done = papers(folder, "--docs", folder)
            assert done.returncode == 0, done.stderr
            cls.cells = json.loads((folder / "papers.json").read_text())["cells"]
            cls.page = (folder / "papers.md").read_text()
            # Without --keep nothing of the data stays.
            cls.left = [path for path in (folder / "papers").iterdir()]
            again = papers(folder, "--again", "papers.json")
            assert again.stdout == cls.page, again.stderr

    def of(self, paper, kind):
        return [cell for cell in self.cells if (cell.get("paper"), cell["kind"]) == (paper, kind)]

    def test_nothing_fails_and_nothing_stays(self):
        self.assertEqual([cell for cell in self.cells if "failed" in cell or "wrong_contents" in cell], [])
        self.assertEqual(self.left, [])

    def test_dlfs_has_epochs_of_each_size_and_lookups(self):
        epochs = self.of("DLFS", "epoch")
        self.assertEqual({cell["size"] for cell in epochs}, {"512 B", "4 KB", "16 KB", "128 KB", "1 MB"})
        self.assertEqual({cell["samples"] for cell in epochs}, {SAMPLES})
        self.assertEqual({cell["contestant"] for cell in epochs if cell.get("cores") == 1} >= {"files", "grainstore"}, True)
        self.assertEqual({cell["contestant"] for cell in self.of("DLFS", "lookup")}, {"files", "grainstore"})

    def test_lmdbio_has_each_number_of_processes(self):
        shared = self.of("LMDBIO", "ranks")
        for reader in {cell["contestant"] for cell in shared}:
            cells = [cell for cell in shared if cell["contestant"] == reader]
            self.assertEqual([cell["world_size"] for cell in cells], [1, 2, 4, 8])
            for cell in cells:
                # The samples of all processes together.
                self.assertEqual(cell["samples"], SAMPLES)
                self.assertGreater(cell["waits_per_gb"] + cell["minor_faults_per_gb"], 0)

    def test_fanstore_has_tf_data_with_and_without_a_buffer(self):
        readers = {cell["contestant"] for cell in self.of("FanStore", "epoch")}
        self.assertLessEqual({"tf.data", "tf.data, in order", "grainstore"}, readers)

    def test_the_page_has_every_paper_and_nothing_missing(self):
        for paper in ("DLFS", "LMDBIO", "FanStore"):
            self.assertIn(f"## {paper}: ", self.page)
        self.assertNotIn("not measured", self.page)

    def test_an_unknown_paper_is_refused_with_the_known_ones(self):
        with tempfile.TemporaryDirectory() as name:
            done = papers(Path(name), "--only", "nobody")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nobody: no such paper; there are: ", done.stderr)


if __name__ == "__main__":
    unittest.main()
