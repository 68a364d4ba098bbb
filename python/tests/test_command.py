"""The command that comes with the package."""

from __future__ import annotations

import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import grainstore

ENTRY = "import sys; from grainstore._command import main; sys.exit(main())"


def command(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", ENTRY, *map(str, words)], capture_output=True, text=True, timeout=100)


def test_the_command_has_the_version_of_the_package() -> None:
    ended = command("--version")
    assert (ended.returncode, ended.stdout.split()[-1]) == (0, grainstore.__version__)


def test_the_command_describes_a_dataset(plain_path: Path) -> None:
    ended = command("inspect", plain_path, "--json")
    assert ended.returncode == 0
    assert "1000" in ended.stdout
    ended = command("plan", plain_path, "--order", "sequential", "--quiet")
    assert (ended.returncode, ended.stdout.split()) == (0, [str(number) for number in range(1000)])


def test_the_exit_status_distinguishes_no_from_failure(made_path: Path, tmp_path: Path) -> None:
    assert command("get", made_path, "sample/00004", "--field", "text").returncode == 0
    assert command("get", made_path, "nope").returncode == 1
    for words in (("inspect", tmp_path / "absent"), ("nope",), ("inspect", made_path, "--nope")):
        ended = command(*words)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr


def test_the_payload_of_a_sample_is_written_as_it_is(plain_path: Path) -> None:
    with grainstore.open(plain_path) as ds:
        ended = subprocess.run(
            [sys.executable, "-c", ENTRY, "get", str(plain_path), "--ordinal", "7"], capture_output=True, timeout=100
        )
        assert (ended.returncode, ended.stdout) == (0, ds[7]["image"])


def test_a_reader_that_goes_away_ends_the_command_quietly(plain_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ENTRY, "ls", str(plain_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.wait(timeout=100)
        assert b"Traceback" not in process.stderr.read()
        assert b"panic" not in process.stderr.read()


def test_the_command_is_interrupted(tmp_path: Path) -> None:
    member = tarfile.TarInfo("a.bin")
    member.size = 1 << 30
    words = ["convert", "--from", "tar", "-", str(tmp_path / "d.grain")]
    # A shell that runs the tests in the background has it ignored, and the command leaves that so.
    heard = f"import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); {ENTRY}"
    process = subprocess.Popen([sys.executable, "-c", heard, *words], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    # More than a pipe holds: it is written when the command has begun to read.
    process.stdin.write(member.tobuf() + bytes(8 << 20))
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)
    assert process.returncode in (130, -signal.SIGINT)
    assert not (tmp_path / "d.grain").exists()
