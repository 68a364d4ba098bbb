"""Epochs in grainstore's own order, for ranks and workers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import torch
import torch.utils.data

from grainstore import Image, InvalidOption, InvalidState, Loader
from grainstore._division import Division, tail_of
from grainstore._loader import Source, check_functions, check_number, check_truth, opened
from grainstore._weights import weights_of
from grainstore._world import rank_and_world_size
from grainstore.torch._callers import dividing_caller, is_collated_by_torch
from grainstore.torch._samples import CollateOwned, TorchTransform, check_collatable, collatable, collated
from grainstore.torch._share import Reader
from grainstore.torch._state import State, check_same, checked
from grainstore.torch._tensors import tensors

# Indices into the tensor that workers share with the process that started them: the epoch; how often it was set, and that
# number plus one when the first worker last read to the end; the epoch plus one that workers last began, where, and how many.
_EPOCH, _SET_COUNT, _FINISHED_AT, _BEGUN, _BEGUN_AT, _WORKERS = range(6)
_WARNED = -1


@dataclass
class _Pass:
    """One pass over the dataset in this process."""

    reader: Reader
    # Its state before anything was returned, and the number of set_epoch calls until then.
    begun: State
    set_count: int
    # None once everything was returned.
    loader: Loader | None
    # Whether the next pass is of the next epoch, though nobody asked for the end of this one.
    is_done: bool = False


class IterableDataset(torch.utils.data.IterableDataset[Any]):
    """An iterable-style dataset: each pass over it is an epoch, in an order that ``seed`` and the epoch decide.

    dataset: a result of ``grainstore.open``, a view of it, or a path (or several) to be opened.
    batch_size: ``None`` gives samples, each a dictionary, for ``DataLoader(dataset, batch_size=...)`` to collate. A
        number gives whole batches, for ``DataLoader(dataset, batch_size=None)``: dictionaries, in which numbers and
        arrays are tensors of the dataset's types, texts lists of ``str``, and bytes lists of ``bytes``. A sample that
        lacks a number or an array cannot be in a tensor: it raises ``grainstore.InvalidOption``, which names it.
    order, seed, window_bytes, lanes, group, on_damage, weights, num_samples: as in ``grainstore.Loader``.
    rank, world_size: which share of each epoch this is; by default ``torch.distributed`` or the launcher's environment
        variables are read in the process that makes the ``DataLoader``, when an epoch begins.
    tail, drop_last: what to do with samples that do not fill a batch of every rank: ``"short"`` returns each once,
        ``"drop"`` drops some, ``"pad"`` repeats some. By default each is returned once, unless the ranks would have
        different numbers of batches (of samples, if ``batch_size`` is ``None``): that is refused.
    decode: how pictures become arrays, a ``grainstore.Image``: their field is then a tensor of bytes.
    transform: a function of a sample. Its exceptions become ``grainstore.TransformFailed``, which names the sample. If it
        has a second parameter, it gets a ``torch.Generator`` seeded by ``seed``, the epoch and the sample alone. If it
        draws from the generators that a process shares, these are seeded likewise, and it runs in one thread.
    collate: a function that makes a batch from a list of samples; with a ``transform``, by default PyTorch's.
    num_threads, prefetch: threads that transform, ``prefetch`` batches ahead; in a worker one thread by default.

    The workers of a ``DataLoader`` each read a share, and together return as many batches as without workers; the order,
    and which samples share a batch, depend on the number of workers. Call ``set_epoch`` before each epoch: it reaches
    workers, too.
    """

    def __init__(
        self,
        dataset: Source,
        batch_size: int | None = None,
        *,
        order: Literal["auto", "full", "chunked", "sequential"] = "auto",
        seed: int = 0,
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
    ) -> None:
        check_functions(transform, collate)
        check_truth("drop_last", drop_last)
        self._tail, self._must_be_even = tail_of(tail, drop_last)
        if batch_size is None and collate is not None:
            raise InvalidOption("collate makes a batch of samples: give batch_size, or give DataLoader its collate_fn")
        self.dataset = opened(dataset)
        self.batch_size = batch_size
        self.order = order
        self.seed = seed
        self.decode = decode
        self.transform = transform
        self.collate = collate
        self._rank, self._world_size = rank, world_size
        self._num_threads, self._prefetch = num_threads, prefetch
        self._window_bytes, self._lanes, self._group, self._on_damage = window_bytes, lanes, group, on_damage
        self._weights = weights_of(self.dataset, weights, num_samples)
        # Of an epoch.
        self._sample_count = len(self.dataset) if self._weights is None else self._weights.num_samples
        # Workers see what is written here, including persistent workers.
        self._shared = torch.zeros(6, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
        self._resume: State | None = None
        self._pass: _Pass | None = None
        # The process that this was unpickled in; rank and world size of the one that pickled it.
        self._parent_ranks: tuple[int, tuple[int, int]] | None = None
        self._warned_of_waste = False
        # Invalid options are reported now, not when the first epoch begins.
        self._loader(self._reader(), 0)

    @property
    def epoch(self) -> int:
        """The number of the current epoch, or of the next one if none is running."""
        return int(self._shared[_EPOCH])

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch, here and in the workers of every ``DataLoader``.

        Without workers, a finished pass is followed by the next epoch. Workers cannot know that a pass is finished:
        they read the same epoch again until this is called, and warn about it.
        """
        check_number("epoch", epoch, 0)
        self._check_division()
        if epoch != self.epoch:
            # Workers have copies of the state; that they have begun tells that it was used.
            is_used = self._shared[_BEGUN] == self.epoch + 1
            if self._resume is not None and self._resume["loader"]["position"] and not is_used:
                warnings.warn(
                    f"the state of epoch {self.epoch} that was loaded is not used: epoch {epoch} was set. A loop that sets "
                    f"epochs itself must begin with epoch {self.epoch}",
                    stacklevel=2,
                )
            self._pass = self._resume = None
        elif self._pass is not None:
            self._pass.is_done = False
        self._shared[_EPOCH] = epoch
        self._shared[_SET_COUNT] += 1

    def __len__(self) -> int:
        """Number of batches in a whole epoch of this rank, with any number of workers; of samples if it gives samples.

        Where Accelerate divides what this dataset gives among the ranks, it is the number of all ranks.
        """
        rank, world_size = self._rank_and_world_size()
        return self._division().batch_count(rank, world_size)

    def __iter__(self) -> Iterator[Any]:
        if self.batch_size is not None and is_collated_by_torch(self):
            raise InvalidOption(
                f"the dataset gives batches of {self.batch_size} samples, and DataLoader makes batches of these: use "
                "DataLoader(dataset, batch_size=None), or IterableDataset without batch_size"
            )
        self._check_division()
        reader = self._reader()
        if self._pass is not None and self._pass.is_done and reader.num_workers == 0:
            # A caller that counts batches never asks for the end.
            self._finish(self._pass)
        resume = self._resume
        if resume is None:
            self._warn_of_repeat(reader)
            loader = self._loader(reader, self.epoch)
        else:
            loader = self._loader(reader, resume["loader"]["epoch"])
            loader.load_state_dict(resume["loader"])
        begun = loader.state_dict()
        if self._must_be_even:
            self._division().check_even(reader.world_size, begun["position"])
        self._resume = None
        if reader.num_workers:
            self._shared[_BEGUN_AT], self._shared[_WORKERS] = begun["position"], reader.num_workers
            self._shared[_BEGUN] = begun["epoch"] + 1
        self._pass = _Pass(reader, begun, int(self._shared[_SET_COUNT]), loader)
        return self._read(self._pass, loader)

    def state_dict(self, num_samples: int | None = None, from_beginning: bool = True) -> State:
        """A position in the epoch, from which ``load_state_dict`` resumes with any number of workers and ranks.

        num_samples: how many samples of this epoch the loop has had, those of all ranks together. By default, those that
            this process's pass returned. Workers return samples that this process does not see: then the number is
            needed, or ``torchdata.stateful_dataloader.StatefulDataLoader``, which calls this in each worker.
        from_beginning: whether the number counts from the beginning of the epoch, or from where this pass began.
        """
        if num_samples is not None:
            return self._state_after(num_samples, from_beginning)
        caller = dividing_caller()
        if caller is not None and caller[1] == "dispatched":
            raise InvalidState(
                "Accelerate's DataLoaderDispatcher saves states from which batches are missing, as it reads ahead of the "
                "loop: use accelerate.skip_first_batches, or a StatefulDataLoader that accelerator.prepare does not get"
            )
        if self._is_read_by_workers():
            raise InvalidState(
                f"workers read epoch {self.epoch}, and this process does not know how much of it they returned: save the "
                "state of a torchdata StatefulDataLoader, or give the number of samples that all ranks have had, "
                "dataset.state_dict(num_samples); between epochs, call set_epoch before saving"
            )
        return self._state()

    def load_state_dict(self, state: State) -> None:
        """Resume from a state of the same dataset, view, seed and order, with any number of workers and ranks.

        state: a result of ``state_dict``, or of that of a ``StatefulDataLoader`` whose workers had returned equally many
            batches. A ``StatefulDataLoader`` resumes from any of its own states, with the same number of workers; with
            more than one, ``world_size`` and ``batch_size`` must be the same, too.
        """
        state = checked(state)
        reader = self._reader()
        expected = {"num_workers": reader.num_workers, "world_size": reader.world_size, "batch_size": self.batch_size}
        if reader.num_workers:
            check_same(state, expected)
        elif state.get("num_workers", 0) > 1:
            raise InvalidState(
                f"this is the state of one of {state['num_workers']} workers: give the state of the whole StatefulDataLoader"
            )
        self._loader(reader, 0).load_state_dict(state["loader"])
        if reader.num_workers == 0:
            # Not in a worker: it would overwrite what was set meanwhile.
            self._shared[_EPOCH], self._shared[_BEGUN] = state["loader"]["epoch"], 0
        self._resume, self._pass = dict(state), None

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self._pass is not None:
            state["_resume"] = self._state()
        state["_pass"] = None
        state["_parent_ranks"] = self._rank_and_world_size()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._parent_ranks = os.getpid(), state["_parent_ranks"]
        self._shared.share_memory_()

    def __repr__(self) -> str:
        return f"<grainstore.torch.IterableDataset of {self.dataset!r}, batch_size={self.batch_size}, epoch {self.epoch}>"

    def _rank_and_world_size(self) -> tuple[int, int]:
        # A library that divides what this gives among the ranks needs all of it.
        if dividing_caller() is not None:
            return 0, 1
        # A worker that was not forked does not know torch.distributed, and got the rank by pickle. The training process
        # itself may have been started by another process, whose rank must not be used, and may fork workers in turn.
        is_worker = torch.utils.data.get_worker_info() is not None
        if is_worker and self._parent_ranks is not None and self._parent_ranks[0] == os.getpid():
            return self._parent_ranks[1]
        return rank_and_world_size(self._rank, self._world_size)

    def _reader(self) -> Reader:
        rank, world_size = self._rank_and_world_size()
        worker = torch.utils.data.get_worker_info()
        return Reader(rank, world_size) if worker is None else Reader(rank, world_size, worker.id, worker.num_workers)

    def _division(self) -> Division:
        return Division(self._sample_count, self.batch_size or 1, self._tail, self.order != "sequential")

    def _is_redivided(self, reader: Reader) -> bool:
        """Whether the samples that do not fill a batch of all workers are divided among the ranks again.

        A worker then takes one batch of its rank, so that there are as many batches, and as full, as without workers.
        Single samples need no such step.
        """
        return reader.num_workers > 1 and (self.batch_size is not None or self._tail != "short")

    def _loader(self, reader: Reader, epoch: int, prefetch: int | None = None) -> Loader:
        transform, collate = self.transform, self.collate
        if self.batch_size is not None and transform is not None and collate is None:
            collate = collated
        if transform is None and collate is not None:
            collate = CollateOwned(collate)
        return Loader(
            self.dataset,
            self.batch_size,
            order=self.order,
            seed=self.seed,
            epoch=epoch,
            rank=reader.number,
            world_size=reader.count,
            tail="drop" if self._is_redivided(reader) else self._tail,
            decode=self.decode,
            transform=None if transform is None else TorchTransform(transform),
            collate=collate,
            num_threads=1 if reader.num_workers and self._num_threads is None else self._num_threads,
            prefetch=self._prefetch if prefetch is None else prefetch,
            window_bytes=self._window_bytes,
            lanes=self._lanes,
            group=self._group,
            on_damage=self._on_damage,
            weights=self._weights,
            # Each pass has its own loader, and most workers do not live longer.
            prefetch_next_epoch=False,
        )

    def _read(self, current: _Pass, loader: Loader) -> Iterator[Any]:
        reader, division, start = current.reader, self._division(), current.begun["position"]
        is_redivided = self._is_redivided(reader)
        if is_redivided:
            # The loader stops after the full batches, so that nothing is transformed twice.
            count = division.whole_count(reader.count, start)
        else:
            count = division.batch_count(reader.number, reader.count, start)
        position = start + count * reader.count * division.batch_size + reader.worker * reader.world_size * division.batch_size
        has_last = (
            is_redivided
            and position < division.sample_count
            and division.batch_count(reader.rank, reader.world_size, position) > 0
        )
        for number, item in enumerate(self._handed_out(loader, count), start=1):
            if number == count and not has_last:
                current.loader, current.is_done = None, True
            yield item
        if has_last:
            # One batch, and nothing ahead of it: the batches after it are other workers'.
            last = self._loader(Reader(reader.rank, reader.world_size), current.begun["epoch"], prefetch=0)
            last.load_state_dict({**current.begun, "position": position})
            for item in self._handed_out(last, 1):
                current.loader, current.is_done = None, True
                yield item
        current.loader = None
        if reader.num_workers:
            # A state at the end of an epoch is loaded only to find that nothing is left.
            read_some = start < division.sample_count and current.begun["epoch"] == self.epoch
            # Another worker may be done before the first one, which warns, has begun.
            if read_some and reader.worker == 0 and self._shared[_FINISHED_AT] != _WARNED:
                self._shared[_FINISHED_AT] = current.set_count + 1
        else:
            self._finish(current)

    def _finish(self, current: _Pass) -> None:
        """Let the next epoch follow a pass in this process."""
        if self._pass is current:
            self._pass = None
            self._shared[_EPOCH] += 1

    def _handed_out(self, loader: Loader, count: int) -> Iterator[Any]:
        """The first ``count`` items of the loader, in the form that the user gets. Then the loader reads no more."""
        items, schema = iter(loader), self.dataset.schema
        try:
            for item in islice(items, count):
                if self.transform is None and self.collate is None:
                    item = collatable(item, schema) if self.batch_size is None else tensors(item)
                if self.batch_size is None:
                    check_collatable(item)
                yield item
        finally:
            items.close()  # type: ignore[attr-defined]

    def _warn_of_repeat(self, reader: Reader) -> None:
        """Warn once that an epoch is read again because set_epoch was not called."""
        repeats = self._shared[_FINISHED_AT] == self._shared[_SET_COUNT] + 1
        if reader.num_workers and reader.worker == 0 and repeats and self.order != "sequential":
            self._shared[_FINISHED_AT] = _WARNED
            warnings.warn(
                f"epoch {self.epoch} is read again, in the same order: call dataset.set_epoch(n) before each epoch",
                stacklevel=2,
            )

    def _check_division(self) -> None:
        """Refuse, or warn of, a library that divides what this gives among the ranks in a way that loses or wastes samples."""
        caller = dividing_caller()
        if caller is None:
            return
        owner, division = caller
        name = type(owner).__name__
        remedy = "do not give the DataLoader to accelerator.prepare: it reads this rank's share by itself"
        if self._rank is not None and self._world_size != 1:
            raise InvalidOption(
                f"the dataset gives the share of rank {self._rank} of {self._world_size}, and {name} divides that among the "
                f"ranks again: omit rank and world_size, or {remedy}"
            )
        if division == "filtered":
            if self.batch_size is not None:
                raise InvalidOption(f"{name} divides samples among the ranks, and the dataset gives batches: {remedy}")
            if not self._warned_of_waste:
                self._warned_of_waste = True
                what = f"every rank reads and transforms all samples, of which {name} keeps its share"
                warnings.warn(f"{what}: {remedy}", stacklevel=3)

    def _is_read_by_workers(self) -> bool:
        """Whether workers of this process have begun the current epoch."""
        is_begun = self._shared[_BEGUN] == self.epoch + 1
        return bool(is_begun) and self._pass is None and torch.utils.data.get_worker_info() is None

    def _state(self) -> State:
        """The position of this process's pass, after what it returned."""
        if self._pass is not None:
            reader, loader = self._pass.reader, self._pass.loader
            # In a worker, a finished pass stays finished until the next epoch: other workers may still read.
            inner = {**self._pass.begun, "position": self._division().sample_count} if loader is None else loader.state_dict()
        elif self._resume is not None:
            return self._resume
        else:
            reader = self._reader()
            inner = self._loader(reader, self.epoch).state_dict()
        return self._state_of(reader.num_workers, inner)

    def _state_after(self, num_samples: int, from_beginning: bool) -> State:
        """The state after a number of samples of the current epoch, which whoever calls has counted."""
        division, by_workers = self._division(), self._is_read_by_workers()
        here = self._state()
        if by_workers:
            begun = int(self._shared[_BEGUN_AT])
        else:
            begun = here["loader"]["position"] if self._pass is None else self._pass.begun["position"]
        position = min(num_samples + (0 if from_beginning else begun), division.sample_count)
        if position < begun:
            raise InvalidState(f"{num_samples} samples are fewer than the {begun} before this pass: count these, too")
        if by_workers and position < division.sample_count:
            self._check_whole_rounds(position - begun, position)
        inner = {**here["loader"], "position": position}
        if not by_workers and position == 0 and here["loader"]["position"] == division.sample_count:
            # All of an epoch was returned, and the samples of the next one are counted.
            inner["epoch"] += 1
        return self._state_of(0, inner)

    def _check_whole_rounds(self, count: int, position: int) -> None:
        """Refuse a number of samples at which the workers have not returned equally many batches."""
        workers = int(self._shared[_WORKERS])
        if position == 0:
            raise InvalidState(f"workers have begun epoch {self.epoch}: between epochs, call set_epoch before saving")
        if self.batch_size is None:
            raise InvalidState("workers return batches whose size the dataset does not know: give batch_size to the dataset")
        batches = workers * self._rank_and_world_size()[1] * self.batch_size
        if count % batches and workers > 1:
            raise InvalidState(
                f"{position} samples of epoch {self.epoch} are no state, as its {workers} workers have not returned equally "
                f"many batches: save after a multiple of {workers} batches of every rank, which are {batches} samples"
            )

    def _state_of(self, num_workers: int, inner: State) -> State:
        world_size = self._rank_and_world_size()[1]
        return {"num_workers": num_workers, "world_size": world_size, "batch_size": self.batch_size, "loader": inner}
