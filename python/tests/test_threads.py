"""Many threads on one dataset."""

from __future__ import annotations

import os
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import made

import grainstore

THREADS = 8


def test_eight_threads_read_the_right_samples(plain: grainstore.Dataset) -> None:
    everyone = threading.Barrier(THREADS)

    def read(seed: int) -> None:
        draw = random.Random(seed)
        everyone.wait()
        for _ in range(30):
            number = draw.randrange(1000)
            assert plain[number] == {"image": made.plain_image(number), "label": number}
            numbers = [draw.randrange(1000) for _ in range(40)]
            batch = plain.get_batch(numbers)
            assert batch["label"].tolist() == numbers
            assert batch["image"].tolist() == [made.plain_image(number) for number in numbers]
        seen = []
        for batch in grainstore.Loader(plain, 64, seed=seed):
            assert batch["image"].tolist() == [made.plain_image(label) for label in batch["label"].tolist()]
            seen += batch["label"].tolist()
        assert sorted(seen) == list(range(1000))

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(read, seed) for seed in range(THREADS)]:
            done.result(timeout=120)


def test_threads_that_share_an_iterator_have_each_sample_once(plain: grainstore.Dataset) -> None:
    for samples in (iter(plain), iter(grainstore.open(plain.paths)[::-1])):

        def read() -> list[int]:
            return [sample["label"] for sample in samples]

        with ThreadPoolExecutor(THREADS) as pool:
            parts = [pool.submit(read) for _ in range(THREADS)]
            seen = [label for part in parts for label in part.result(timeout=120)]
        assert sorted(seen) == list(range(1000))


def test_who_reads_while_another_closes_has_the_sample_or_hears_that_it_is_closed(plain_path: Path) -> None:
    for _ in range(10):
        ds = grainstore.open(plain_path)
        everyone = threading.Barrier(THREADS + 1)

        def read(ds: grainstore.Dataset, everyone: threading.Barrier) -> None:
            everyone.wait()
            try:
                while True:
                    assert ds[17] == {"image": made.plain_image(17), "label": 17}
                    assert ds.get_batch([5, 6])["label"].tolist() == [5, 6]
            except grainstore.Closed:
                pass

        with ThreadPoolExecutor(THREADS) as pool:
            readers = [pool.submit(read, ds, everyone) for _ in range(THREADS)]
            everyone.wait()
            ds.close()
            for reader in readers:
                reader.result(timeout=120)


def test_a_running_epoch_outlives_the_closing_of_its_dataset(plain_path: Path) -> None:
    ds = grainstore.open(plain_path)
    batches = iter(grainstore.Loader(ds, 10))
    seen = next(batches)["label"].tolist()
    ds.close()
    for batch in batches:
        seen += batch["label"].tolist()
    assert sorted(seen) == list(range(1000))


def test_others_run_while_a_thread_waits_for_samples(tmp_path: Path) -> None:
    with grainstore.Writer(tmp_path / "d.grain", {"image": "bytes"}, keyed=False) as writer:
        writer.write_batch(image=[bytes(1 << 20)] * 64)
    counted: list[None] = []
    ended = threading.Event()

    def count() -> None:
        while not ended.is_set():
            counted.append(None)
            os.stat("/")  # lets go of Python's lock

    counter = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    # Nobody is made to let go of Python's lock: who has it keeps it until it waits for something.
    sys.setswitchinterval(1000)
    try:
        with grainstore.open(tmp_path / "d.grain", io="buffered") as ds:
            counter.start()
            before = len(counted)
            for _ in range(20):
                assert len(ds.get_batch(range(64))) == 64
                if len(counted) > before:
                    break
            assert len(counted) > before
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        counter.join()
