"""Batches of an epoch, for a training loop.

The library implements the epoch itself (its order, what is read when, its state). This module adds what a Python loop
expects: the number of the next epoch, the ranks, and user functions that are applied to samples.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any, Literal, NamedTuple, NoReturn

import numpy as np

from grainstore import _core
from grainstore._core import Batch, Dataset, Image
from grainstore._division import Division, nothing_left, tail_of
from grainstore._errors import Forked, InvalidOption, InvalidState
from grainstore._pictures import check_decode, decoded
from grainstore._stack import stack
from grainstore._transforms import as_sample_transform, transformed
from grainstore._weights import weights_of
from grainstore._world import rank_and_world_size

Sample = dict[str, Any]
State = dict[str, Any]
Path = str | os.PathLike[str]
# An open dataset or a view of one; or the argument of grainstore.open.
Source = Dataset | Path | Iterable[Path]

_logger = logging.getLogger("grainstore")

# Messages that were already logged in this process.
_logged: set[str] = set()

# Above every number that the library uses.
_END = 1 << 64

# Samples that are read together if they are returned one by one.
_UNIT = 256


class Loader:
    """An iterable of batches: each pass over it is an epoch, in a fresh order that ``seed`` and the epoch's number decide.

    dataset: a result of ``grainstore.open``, a view of it, or a path (or several) to be opened.
    batch_size: samples per batch of this rank; ``None`` returns samples one by one, each a dictionary.
    order: ``"auto"`` (by the mean size of a sample; or the order of a loaded state), ``"full"``, ``"chunked"`` or
        ``"sequential"``.
    rank, world_size: which share of each epoch this is; by default ``torch.distributed``, ``jax.distributed`` or the
        launcher's environment variables (``RANK`` and ``WORLD_SIZE``, or MPI's) are read when an epoch begins.
    tail, drop_last: what to do with samples that do not fill a batch of every rank: ``"short"`` returns each once, in
        shorter last batches, ``"drop"`` (``drop_last=True``) drops some, ``"pad"`` repeats some of the epoch's first. By
        default each is returned once, unless the ranks would have different numbers of batches (of samples, if
        ``batch_size`` is ``None``): such an epoch is refused when it begins. With ``"short"`` a rank may have one batch
        less than another. No batch is empty.
    decode: how pictures become arrays, a ``grainstore.Image``. The field with the pictures is then one array of bytes for the
        whole batch; ``num_threads`` threads decode it, ``prefetch`` batches ahead. A transform gets the decoded pictures.
    transform: a function of a sample (a dictionary) that returns whatever the model needs. If it has a second parameter,
        it gets a ``numpy.random.Generator`` seeded by ``seed``, the epoch and the sample alone. It runs in ``num_threads``
        threads, ``prefetch`` batches ahead: useful for code that releases Python's lock (decoding, NumPy), useless for
        pure Python code, for which ``grainstore.torch`` has worker processes. If it draws from the generators that a
        process shares (of ``random``, ``numpy.random`` or PyTorch), these are seeded likewise for each sample, and are
        afterwards what they were; that takes one thread, the loop's.
    collate: a function that makes a batch from a list of samples. Without it, and with a ``transform``, what that returns
        is stacked: dictionaries, tuples, lists and dataclasses by their members, arrays and numbers to arrays, PyTorch's
        tensors to tensors, everything else, and a member that is ``None`` in some samples, to lists. With neither,
        batches are columns (``grainstore.Batch``) and no sample becomes a Python object.
    window_bytes, lanes: bytes of memory from which the chunked order draws samples, and the number of sequences that it
        mixes; more of either mixes better.
    group: how many neighbouring chunks the chunked order shuffles as one; by default that of a loaded state, or 1. More
        suits storage that is best read in ranges of megabytes, and mixes less.
    on_damage: ``"raise"``, or ``"skip"`` to continue without damaged samples; a batch that would have none left is an error.
    weights: one number per sample of the dataset or view: each epoch draws ``num_samples`` of them (by default as many as
        there are) with replacement, each with its share of all weights; every epoch draws others.
    prefetch_next_epoch: whether the first batches of the next epoch are read before this one ends; by default from the
        second pass on, when the loop has shown that it goes on from epoch to epoch.
    """

    def __init__(
        self,
        dataset: Source,
        batch_size: int | None = 256,
        *,
        order: Literal["auto", "full", "chunked", "sequential"] = "auto",
        seed: int = 0,
        epoch: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        drop_last: bool = False,
        tail: Literal["short", "drop", "pad"] | None = None,
        decode: Image | None = None,
        transform: Callable[..., Any] | None = None,
        collate: Callable[[list[Any]], Any] | None = None,
        num_threads: int | None = None,
        prefetch: int = 2,
        window_bytes: int | None = None,
        lanes: int | None = None,
        group: int | None = None,
        on_damage: Literal["raise", "skip"] = "raise",
        weights: Any = None,
        num_samples: int | None = None,
        prefetch_next_epoch: bool | None = None,
    ) -> None:
        dataset = opened(dataset)
        if batch_size is None and collate is not None:
            raise InvalidOption("collate makes a batch of samples, and batch_size=None gives them one by one")
        check_functions(transform, collate)
        check_decode(decode, dataset)
        check_truth("drop_last", drop_last)
        if prefetch_next_epoch is not None:
            check_truth("prefetch_next_epoch", prefetch_next_epoch)
        self._tail, self._must_be_even = tail_of(tail, drop_last)
        for name, number, least in (
            ("batch_size", batch_size, 1),
            ("seed", seed, 0),
            ("epoch", epoch, 0),
            ("rank", rank, 0),
            ("world_size", world_size, 1),
            ("num_threads", num_threads, 1),
            ("prefetch", prefetch, 0),
            ("window_bytes", window_bytes, 1),
            ("lanes", lanes, 1),
            ("group", group, 1),
        ):
            check_number(name, number, least)
        self.dataset = dataset
        self.batch_size = batch_size
        self.order = order
        self.seed = seed
        self.decode = decode
        self.transform = transform
        self.collate = collate
        self.num_threads = num_threads or min(8, len(os.sched_getaffinity(0)))
        self.prefetch = prefetch
        self._epoch = epoch
        self._rank, self._world_size = rank, world_size
        self._window_bytes, self._lanes, self._group = window_bytes, lanes, group
        self._on_damage = on_damage
        self._weights = weights_of(dataset, weights, num_samples)
        self._prefetch_next_epoch = prefetch_next_epoch
        self._has_finished = False
        self._resume: State | None = None
        self._pass: _Pass | None = None
        self._latest: _Pass | None = None
        # Readers of each rank that share its part, as Grain's workers do.
        self._num_workers = 1
        # Invalid options are reported now, not when the first epoch begins.
        self._begin(None, planned=True)

    @property
    def epoch(self) -> int:
        """The number of the current epoch, or of the next one if none is running."""
        return self._epoch

    @property
    def rank(self) -> int:
        return rank_and_world_size(self._rank, self._world_size)[0]

    @property
    def world_size(self) -> int:
        return rank_and_world_size(self._rank, self._world_size)[1]

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch. Without this call, each finished pass is followed by the next epoch."""
        check_number("epoch", epoch, 0)
        if self._resume is not None and self._resume["epoch"] != epoch:
            self._resume = None
        if epoch != self._epoch:
            self._pass = None
        elif self._pass is not None:
            self._pass.handed_all = False
        self._epoch = epoch

    def __len__(self) -> int:
        """Number of batches in a whole epoch of this rank; of samples if ``batch_size`` is ``None``."""
        rank, world_size = rank_and_world_size(self._rank, self._world_size)
        return self._division(self.batch_size or 1, self.order).batch_count(rank, world_size)

    def __iter__(self) -> Iterator[Any]:
        # An abandoned pass starts over; after load_state_dict the pass resumes from the state.
        if self._pass is not None and self._pass.handed_all:
            # A caller that counts batches never requests the end.
            self._finish(self._pass)
        self._check_even()
        begun = _Pass(self._begin(self._resume, planned=False))
        notice = begun.epoch.notice
        if notice is not None and notice not in _logged and self.rank == 0:
            _logged.add(notice)
            _logger.info("%s", notice)
        # Only now, when nothing can fail any more.
        self._resume = None
        self._pass = self._latest = begun
        return self._batches(begun)

    def __getitem__(self, index: object) -> NoReturn:
        # A DataLoader would take it for a map-style dataset.
        raise TypeError(
            "a Loader has no samples by number, as it is an iterable of batches: loop over it without a DataLoader, or give "
            "the DataLoader grainstore.torch.IterableDataset or MapDataset"
        )

    def state_dict(self) -> State:
        """The position after the batches that were returned, without those that were read ahead.

        It is the same on every rank; ``load_state_dict`` resumes from it with any number of ranks.
        """
        if self._pass is not None:
            return self._pass.state()
        return self._resume or _Pass(self._begin(None, planned=True)).state()

    def load_state_dict(self, state: State) -> None:
        """Resume from a state of the same dataset, view, seed and order: the next pass begins with the very next sample."""
        if not isinstance(state, dict):
            raise InvalidState(f"a state is the result of state_dict, not {type(state).__name__}")
        if "loader" in state or "_snapshot" in state or "_num_yielded" in state:
            raise InvalidState(
                "this is the state of a grainstore.torch.IterableDataset or of a StatefulDataLoader, which resumes it: a "
                "Loader takes what its own state_dict returned"
            )
        if "epoch" not in state:
            members = ", ".join(map(str, state)) or "nothing"
            raise InvalidState(f"a state is the result of state_dict, and this dictionary is none: it has {members}")
        epoch = state["epoch"]
        if not isinstance(epoch, int) or isinstance(epoch, bool) or not 0 <= epoch < _END:
            raise InvalidState(f'a state is the result of state_dict; this has the "epoch" {epoch!r}')
        before, self._epoch = self._epoch, epoch
        try:
            self._begin(state, planned=True)
        except BaseException:
            self._epoch = before
            raise
        self._resume, self._pass = dict(state), None

    def stats(self) -> dict[str, Any]:
        """Statistics of the current or last pass: reading, waiting, verifying, copying, pictures that did not decode so far.

        Empty before the first pass.
        """
        return {} if self._latest is None else self._latest.stats()

    def __getstate__(self) -> dict[str, Any]:
        # Another process resumes from the position of this one.
        state = dict(self.__dict__)
        if self._pass is not None and self._pass.handed_all:
            state["_epoch"] += 1
        elif self._pass is not None:
            state["_resume"] = self._pass.state()
        state["_pass"] = state["_latest"] = None
        return state

    def __repr__(self) -> str:
        return f"<grainstore.Loader of {self.dataset!r}, batch_size={self.batch_size}, epoch {self._epoch}>"

    def _division(self, batch_size: int, order: str) -> Division:
        samples = len(self.dataset) if self._weights is None else self._weights.num_samples
        return Division(samples, batch_size, self._tail, order != "sequential")

    def _check_even(self) -> None:
        """Refuse the next epoch if ranks would not have equally many batches of it, and nobody asked for that."""
        if self._must_be_even:
            world_size, start = self.world_size // self._num_workers, 0 if self._resume is None else self._resume["position"]
            self._division(self.batch_size or 1, self.order).check_even(world_size, start, self._num_workers)

    def _unit(self) -> int:
        """Samples that the engine reads together if they are returned one by one.

        Ranks whose samples alternate are at the same position after the same number of samples, even within a batch.
        """
        alternate = self.order != "sequential" or self.world_size == 1
        return _UNIT if self._tail == "short" and alternate else 1

    def _begin(self, resume: State | None, *, planned: bool) -> Any:
        rank, world_size = rank_and_world_size(self._rank, self._world_size)
        return self.dataset._epoch(
            order=self.order,
            seed=self.seed,
            epoch=self._epoch,
            batch_size=self._unit() if self.batch_size is None else self.batch_size,
            rank=rank,
            world_size=world_size,
            tail=self._tail,
            window_bytes=self._window_bytes,
            lanes=self._lanes,
            group=self._group,
            on_damage=self._on_damage,
            state=None if resume is None else _text_of(resume),
            followed=self._is_followed(),
            planned=planned,
            weights=self._weights,
        )

    def _batches(self, begun: _Pass) -> Iterator[Any]:
        made = self._made(begun)
        try:
            # A forked process does not have the threads that it would wait for.
            while begun.check_home() and (item := next(made, None)) is not None:
                batch, begun.done, begun.handed_all = item
                yield batch
        finally:
            made.close()
            begun.leave()
        self._finish(begun)

    def _finish(self, begun: _Pass) -> None:
        if self._pass is begun:
            self._pass = None
            self._epoch += 1
            self._has_finished = True

    def _is_followed(self) -> bool:
        """Whether a pass that begins now reads ahead for the next one: by default once the loop has gone on to a second."""
        return self._has_finished if self._prefetch_next_epoch is None else self._prefetch_next_epoch

    def _made(self, begun: _Pass) -> Generator[tuple[Any, _Done, bool]]:
        """Each item to return, the progress after it, and whether it is the last."""
        source: Iterator[tuple[Batch, list[Any] | None]]
        batches = begun.epoch
        if self.decode is not None:
            number, threads = begun.number, self.num_threads
            batches = decoded(
                batches,
                self.decode,
                seed=self.seed,
                epoch=number,
                num_threads=threads,
                prefetch=self.prefetch,
                on_undecoded=begun.count_undecoded,
            )
        if self.transform is not None:
            source = transformed(
                batches,
                as_sample_transform(self.transform),
                self.dataset,
                seed=self.seed,
                epoch=begun.number,
                num_threads=self.num_threads,
                prefetch=self.prefetch,
            )
        else:
            source = ((batch, None) for batch in batches)
        rank, world_size = self.rank, self.world_size
        division = self._division(self._unit() if self.batch_size is None else self.batch_size, begun.epoch.order)
        # The library gives every rank as many batches, of which the last may have no sample.
        batch_count = division.batch_count(rank, world_size, begun.start)
        for number, (batch, samples) in enumerate(source, start=1):
            if number > batch_count:
                continue
            is_last = number == batch_count
            if self.batch_size is not None and not len(batch):
                raise nothing_left(batch, number, begun.number)
            if self.batch_size is None:
                given = batch.tolist() if samples is None else samples
                # Ranks take turns: after the same number of samples, they are at the same position. Damaged samples count.
                nexts = (batch.positions - rank + world_size).tolist()
                for place, sample in enumerate(given, start=1):
                    ends = place == len(given)
                    yield sample, _Done(number) if ends else _Done(number - 1, nexts[place - 1]), is_last and ends
            elif self.collate is not None:
                yield self.collate(batch.tolist() if samples is None else samples), _Done(number), is_last
            elif samples is None:
                yield batch, _Done(number), is_last
            else:
                yield stack(samples, batch.ordinals.tolist()), _Done(number), is_last


class _Done(NamedTuple):
    """How much of a pass was returned: whole batches, and the position within the next one."""

    batches: int
    position: int | None = None


class _Pass:
    """One pass over the loader: an epoch, and how much of it was returned."""

    def __init__(self, epoch: Any) -> None:
        self.epoch = epoch
        begun = self._after(0)
        self.number: int = begun["epoch"]
        self.start: int = begun["position"]
        self.done = _Done(0)
        self.handed_all = False
        self._process = os.getpid()
        self._stats: dict[str, Any] | None = None
        self._undecoded = 0

    def check_home(self) -> bool:
        if os.getpid() != self._process:
            raise Forked("the epoch belongs to the process that this one was forked from: begin one here")
        return True

    def leave(self) -> None:
        """Stop an abandoned epoch from reading ahead."""
        if os.getpid() == self._process and not self.handed_all:
            self._stats = self.epoch.stats()
            self.epoch.close()

    def stats(self) -> dict[str, Any]:
        if os.getpid() != self._process:
            return {}
        stats = self.epoch.stats() if self._stats is None else self._stats
        return {**stats, "undecoded_samples": self._undecoded}

    def count_undecoded(self, samples: int) -> None:
        self._undecoded += samples

    def state(self) -> State:
        state = self._after(self.done.batches)
        if self.done.position is not None:
            # Never past the end if the last batch is short.
            state["position"] = min(self.done.position, self._after(self.done.batches + 1)["position"])
        return state

    def _after(self, batches: int) -> State:
        state: State = json.loads(self.epoch.state_after(batches))
        return state


def opened(source: Source) -> Dataset:
    """The dataset, opened if it is not open yet."""
    if isinstance(source, Dataset):
        return source
    if isinstance(source, Iterable) or hasattr(source, "__fspath__"):
        return _core.open(source)
    raise TypeError(f"dataset is the result of grainstore.open, or a path, not {type(source).__name__}")


def check_functions(transform: object, collate: object = None) -> None:
    if transform is not None and not callable(transform):
        raise TypeError(f"transform is a function of a sample, not {type(transform).__name__}")
    if collate is not None and not callable(collate):
        raise TypeError(f"collate is a function of a list of samples, not {type(collate).__name__}")


def check_truth(name: str, value: object) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is True or False, not {type(value).__name__}")


def check_number(name: str, number: int | None, least: int) -> None:
    if number is None:
        return
    if not hasattr(number, "__index__"):
        raise TypeError(f"{name} is an integer, not {type(number).__name__}")
    if not least <= number < _END:
        raise InvalidOption(f"{name} is {number}, expected {least} or more, and less than 2**64")


def _text_of(state: State) -> str:
    try:
        return json.dumps(state)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidState(f"a state is the result of state_dict: {error}") from error
