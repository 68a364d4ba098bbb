"""The logger `grainstore`: quiet until it is configured, and never in the way of threads, forks and exits."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import grainstore
from grainstore import Loader, _core

TIMEOUT_S = 100


def printed(script: str, *arguments: Path) -> str:
    """What a script prints on stderr. It ends without an error."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(script), *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr


@pytest.fixture(autouse=True)
def _reports_of_other_tests() -> None:
    """They are delivered before a test begins to listen."""
    _core._deliver_reports()


def messages(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [f"{record.name}: {record.getMessage()}" for record in caplog.records if record.levelno == level]


def test_opened_datasets_and_epochs_are_reported(plain_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "grainstore")
    with grainstore.open(plain_path) as dataset:
        opened = messages(caplog, logging.DEBUG)
        assert any(text.startswith(f"grainstore.store: open path={plain_path}: took ") for text in opened)
        assert any(text.startswith("grainstore.reader: reader made samples=1000 segments=1 io=") for text in opened)
        batches = iter(Loader(dataset, 100, seed=7))
        next(batches)
        begun = messages(caplog, logging.INFO)
        assert len(begun) == 1
        assert begun[0].startswith("grainstore.reader: epoch seed=7 epoch=0 order=")
        assert begun[0].endswith(" batches=10: epoch begins")
        assert sum(1 for _ in batches) == 9
        assert any(": epoch ends batches=10 waited=" in text for text in messages(caplog, logging.INFO))
    records = caplog.records
    assert all(before.created <= after.created for before, after in zip(records, records[1:]))


def test_what_is_written_and_converted_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "grainstore")
    with grainstore.Writer(tmp_path / "a.grain", {"data": "bytes"}) as writer:
        writer.write(key="a", data=b"1")
    written = messages(caplog, logging.INFO)
    assert any(text.startswith("grainstore.writer: dataset committed samples=1 ") for text in written)
    caplog.clear()
    grainstore.convert(tmp_path / "a.grain", tmp_path / "b.grain")
    assert any(text.startswith("grainstore.converters: pack kind=") for text in messages(caplog, logging.INFO))


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING, logging.CRITICAL])
def test_less_is_reported_at_a_higher_level(
    plain_path: Path, caplog: pytest.LogCaptureFixture, level: int
) -> None:
    caplog.set_level(level, "grainstore")
    with grainstore.open(plain_path) as dataset:
        assert len(list(Loader(dataset, 100))) == 10
    assert bool(messages(caplog, logging.INFO)) == (level == logging.INFO)


def test_a_part_has_a_level_of_its_own(plain_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "grainstore")
    caplog.set_level(logging.DEBUG, "grainstore.store")
    grainstore.open(plain_path).close()
    assert {record.name for record in caplog.records} == {"grainstore.store"}


def test_an_exception_of_a_filter_is_raised_and_loses_no_batch(
    plain_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "grainstore")
    logger = logging.getLogger("grainstore.reader")

    def refuse(record: logging.LogRecord) -> bool:
        raise LookupError(record.getMessage())

    with grainstore.open(plain_path) as dataset:
        logger.addFilter(refuse)
        try:
            with pytest.raises(LookupError, match="epoch begins"):
                list(Loader(dataset, 100))
        finally:
            logger.removeFilter(refuse)
        assert sum(len(batch) for batch in Loader(dataset, 100)) == 1000


def test_an_exception_of_a_filter_is_raised_and_loses_no_bytes_of_a_file(
    plain_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "grainstore")
    logger = logging.getLogger("grainstore.store")

    def refuse(record: logging.LogRecord) -> bool:
        raise LookupError(record.getMessage())

    with grainstore.open(plain_path) as dataset:
        with dataset.open(0) as file:
            whole = file.read()
        buffer = bytearray(len(whole))
        logger.addFilter(refuse)
        try:
            for read in (lambda file: file.read(3), lambda file: file.readinto(buffer)):
                with dataset.open(0) as file:
                    assert file.read(2) == whole[:2]
                    # What it opens before it refuses is reported by the next call.
                    with pytest.raises(grainstore.NoSuchName):
                        grainstore.verify(plain_path, check_images=True, field="none of this name")
                    with pytest.raises(LookupError, match="open path="):
                        read(file)
                    assert (file.tell(), file.read()) == (2, whole[2:])
        finally:
            logger.removeFilter(refuse)


def test_nothing_is_printed_unless_logging_is_configured(plain_path: Path) -> None:
    script = """
        import logging, sys, grainstore
        with grainstore.open(sys.argv[1], engine="pread") as dataset:
            list(grainstore.Loader(dataset, 100)), dataset[0]
        logging.getLogger("grainstore.reader").error("there is no handler")
    """
    assert printed(script, plain_path) == ""


def test_the_configuration_of_the_documentation_prints_reports(plain_path: Path) -> None:
    script = """
        import logging, sys, grainstore
        logging.basicConfig()
        logging.getLogger("grainstore").setLevel(logging.DEBUG)
        with grainstore.open(sys.argv[1]) as dataset:
            list(grainstore.Loader(dataset, 100))
    """
    lines = printed(script, plain_path).splitlines()
    assert any(line.startswith("DEBUG:grainstore.store:open path=") for line in lines)
    assert any(line.startswith("INFO:grainstore.reader:epoch seed=0 epoch=0 order=") for line in lines)


def test_threads_that_read_and_log_do_not_wait_for_each_other(
    plain_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "grainstore")
    counts: list[int] = []

    def read() -> None:
        for seed in range(10):
            with grainstore.open(plain_path) as dataset:
                counts.append(sum(len(batch) for batch in Loader(dataset, 100, seed=seed)))

    threads = [threading.Thread(target=read, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    assert counts == [1000] * 40
    assert sum("epoch begins" in record.getMessage() for record in caplog.records) == 40


def test_forked_processes_log_what_they_do_and_nothing_twice(plain_path: Path) -> None:
    script = """
        import logging, os, sys, threading, grainstore
        class Direct(logging.Handler):
            # A fork copies what the buffer of sys.stderr holds of a line.
            def emit(self, record):
                os.write(2, (self.format(record) + chr(10)).encode())
        logging.basicConfig(format="%(process)d %(message)s", handlers=[Direct()])
        logging.getLogger("grainstore").setLevel(logging.INFO)
        dataset = grainstore.open(sys.argv[1])
        def read():
            for seed in range(20):
                list(grainstore.Loader(dataset, 100, seed=seed))
        thread = threading.Thread(target=read)
        thread.start()
        for number in range(100, 120):
            child = os.fork()
            if child == 0:
                list(grainstore.Loader(grainstore.open(sys.argv[1]), 100, seed=number))
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        thread.join()
        print(os.getpid(), "parent", file=sys.stderr)
    """
    lines = printed(script, plain_path).splitlines()
    parent = lines[-1].split()[0]
    begun = [line for line in lines if line.endswith("epoch begins")]
    seeds = [int(line.split("seed=")[1].split()[0]) for line in begun]
    assert sorted(seeds) == [*range(20), *range(100, 120)]
    assert all(line.startswith(parent + " ") == (seed < 100) for line, seed in zip(begun, seeds))


@pytest.mark.parametrize("end", ["", "sys.exit()", "del batches", "batches.close()"])
def test_an_interpreter_ends_in_the_midst_of_an_epoch_that_is_logged(plain_path: Path, end: str) -> None:
    script = f"""
        import logging, sys, grainstore
        logging.basicConfig()
        logging.getLogger("grainstore").setLevel(logging.DEBUG)
        dataset = grainstore.open(sys.argv[1])
        batches = iter(grainstore.Loader(dataset, 50))
        next(batches)
        {end}
    """
    lines = printed(script, plain_path).splitlines()
    assert all(line.startswith(("DEBUG:grainstore.", "INFO:grainstore.", "WARNING:grainstore.")) for line in lines)
    assert sum("epoch begins" in line for line in lines) == 1


def test_the_command_in_the_package_prints_its_own(plain_path: Path) -> None:
    script = """
        import sys
        from grainstore import _command
        sys.argv = ["grainstore", "epoch", sys.argv[1], "--log", "info", "--quiet"]
        sys.exit(_command.main())
    """
    assert "info: epoch seed=0 epoch=0 order=" in printed(script, plain_path)
