"""Ctrl-C, and interpreters that end while samples are read ahead: each in a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import grainstore

TIMEOUT_S = 100


def python(script: str, *arguments: str | Path) -> subprocess.Popen[str]:
    # A shell that runs the tests in the background has it ignored, and Python leaves that so.
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = [sys.executable, "-c", heard + textwrap.dedent(script), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit status of the process and its messages. A process that hangs is killed."""
    try:
        _, errors = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, errors


@pytest.mark.parametrize("options", ["50", "None", "50, transform=lambda sample: sample['label'], prefetch=5"])
@pytest.mark.parametrize("end", ["", "sys.exit()", "del batches", "batches.close()"])
def test_an_interpreter_ends_in_the_midst_of_an_epoch(plain_path: Path, options: str, end: str) -> None:
    script = f"""
        import sys, grainstore
        dataset = grainstore.open(sys.argv[1])
        batches = iter(grainstore.Loader(dataset, {options}))
        samples = iter(dataset)
        next(batches), next(samples)
        {end}
    """
    assert ended(python(script, plain_path)) == (0, "")


def test_ctrl_c_stops_a_conversion_whose_function_waits(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    for number in range(40):
        (tmp_path / "folder" / f"{number}.bin").write_bytes(b"1")
    script = """
        import os, signal, sys, threading, grainstore
        def waits(sample):
            if int(sample["key"][:-4]) == int(sys.argv[3]):
                os.kill(os.getppid(), signal.SIGINT)
                threading.Event().wait()
            return sample
        grainstore.convert(sys.argv[1], sys.argv[2], order="source", transform=waits, workers=2)
    """
    # One of the first samples, from which the types are learnt, and a later one.
    for number in (0, 9):
        status, errors = ended(python(script, tmp_path / "folder", tmp_path / "d.grain", str(number)))
        assert status != 0 and errors.rstrip().endswith("KeyboardInterrupt")
        assert sorted(os.listdir(tmp_path)) == ["folder"]


def test_an_interpreter_ends_while_a_thread_iterates(plain_path: Path) -> None:
    script = """
        import sys, threading, grainstore
        dataset = grainstore.open(sys.argv[1])
        began = threading.Event()
        def read():
            loader = grainstore.Loader(dataset, 50)
            while True:
                for batch in loader:
                    began.set()
        threading.Thread(target=read, daemon=True).start()
        began.wait()
    """
    assert ended(python(script, plain_path)) == (0, "")


@pytest.mark.parametrize("loop", [
    "for batch in grainstore.Loader(dataset, 50): say()",
    "for batch in grainstore.Loader(dataset, 50, transform=lambda sample: sample['label']): say()",
    "for sample in grainstore.Loader(dataset, None): say()",
    "for sample in dataset: say()",
    "dataset.get_batch([5, 6, 7]); say()",
    "dataset[5]; say()",
    "dataset.select_columns(['label'])[5]; say()",
])
def test_ctrl_c_interrupts_who_reads(plain_path: Path, loop: str) -> None:
    script = f"""
        import os, sys, grainstore
        def say(said=[]):
            if not said:
                said.append(os.write(1, b"reading"))
        dataset = grainstore.open(sys.argv[1])
        while True:
            {loop}
    """
    process = python(script, plain_path)
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 7) == b"reading"
    process.send_signal(signal.SIGINT)
    status, errors = ended(process)
    assert status == -signal.SIGINT
    assert errors.endswith("KeyboardInterrupt\n")


@pytest.mark.parametrize("call", [
    "writer.write(key=str(number), image=bytes(100))",
    "writer.write_batch(key=[str(number), str(number) + '+'], image=[b'1', b'22'])",
    "dataset[5]",
    "labels[5]",
    "dataset.get_batch([5, 6, 7])['image'][1]",
    "dataset.column('label')[5]",
    "next(samples)",
    "list(grainstore.Loader(dataset, 50))",
    "dataset[Number()]",
    "writer.write_batch(key=[str(number), str(number) + '+'], image=[b'1', b'22'], level=[Level(), Level()])",
])
def test_what_a_signal_handler_raises_is_never_lost(plain_path: Path, tmp_path: Path, call: str) -> None:
    script = f"""
        import itertools, signal, sys, grainstore

        class Interruption(Exception):
            pass

        class Number:
            def __index__(self):
                return sum(range(100)) % 10

        class Level:
            def __float__(self):
                return float(sum(range(100)))

        handled = 0
        def handler(*_):
            global handled
            handled += 1
            raise Interruption

        signal.signal(signal.SIGALRM, handler)
        dataset = grainstore.open(sys.argv[1])
        writer = grainstore.Writer(sys.argv[2], {{"image": "bytes", "level": "float64"}})
        samples = itertools.chain.from_iterable(dataset for _ in itertools.count())
        labels = dataset.select_columns(["label"])
        number = 0
        for turn in range(200):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005)
                while handled == turn:
                    number += 1
                    {call}
                print("lost in turn", turn, file=sys.stderr)
                break
            except Interruption:
                samples = itertools.chain.from_iterable(dataset for _ in itertools.count())
        writer.discard()
    """
    assert ended(python(script, plain_path, tmp_path / "d.grain")) == (0, "")


def test_ctrl_c_leaves_no_dataset_of_a_writer(tmp_path: Path) -> None:
    script = """
        import os, sys, grainstore
        with grainstore.Writer(sys.argv[1], {"image": "bytes"}) as writer:
            number = 0
            while True:
                writer.write(key=str(number), image=bytes(100))
                number += 1
                if number == 1000:
                    os.write(1, b"writing")
    """
    process = python(script, tmp_path / "d.grain")
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 7) == b"writing"
    process.send_signal(signal.SIGINT)
    status, errors = ended(process)
    assert status == -signal.SIGINT
    assert errors.endswith("KeyboardInterrupt\n")
    assert os.listdir(tmp_path) == []


def test_a_writer_that_is_killed_leaves_no_dataset_and_is_in_nobodys_way(tmp_path: Path) -> None:
    script = """
        import os, signal, sys, grainstore
        with grainstore.Writer(sys.argv[1], {"image": "bytes"}) as writer:
            writer.write(key="a", image=bytes(100))
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert ended(python(script, tmp_path / "d.grain"))[0] == -signal.SIGKILL
    assert not (tmp_path / "d.grain").exists()
    with grainstore.Writer(tmp_path / "d.grain", {"image": "bytes"}) as writer:
        writer.write(key="b", image=b"b")
    assert os.listdir(tmp_path) == ["d.grain"]
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert list(ds) == [{"image": b"b"}]


def test_ctrl_c_stops_a_conversion_and_leaves_no_dataset(many_files: Path, tmp_path: Path) -> None:
    script = """
        import os, signal, sys, grainstore
        heard = []
        def interrupt(progress):
            if not heard:
                heard.append(progress)
                os.kill(os.getpid(), signal.SIGINT)
        grainstore.convert(sys.argv[1], sys.argv[2], jobs=1, progress=interrupt)
    """
    status, errors = ended(python(script, many_files, tmp_path / "d.grain"))
    assert status == -signal.SIGINT
    assert errors.endswith("KeyboardInterrupt\n")
    assert not (tmp_path / "d.grain").exists()
