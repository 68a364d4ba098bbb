# The docstrings are in the compiled module.
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Final, Literal, Self, SupportsIndex, TypeAlias, final, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

from grainstore._convert import Exported, Progress, Summary

__all__ = [
    "Batch",
    "Buffers",
    "Dataset",
    "Epoch",
    "Image",
    "Keys",
    "Memory",
    "Writer",
    "_Weights",
    "__version__",
    "_adopt",
    "_append",
    "_convert",
    "_draw_seed",
    "_export",
    "_reopen",
    "_reweigh",
    "_run_command",
    "open",
    "rebuild_index",
    "verify",
]

_Path: TypeAlias = str | PathLike[str]
_Paths: TypeAlias = _Path | Iterable[_Path]
_Key: TypeAlias = str | bytes
_Sample: TypeAlias = dict[str, Any]
# A number, numbers, or a mask.
_Indices: TypeAlias = Sequence[SupportsIndex] | NDArray[np.integer[Any]] | NDArray[np.bool_] | SupportsIndex
_OnProgress: TypeAlias = Callable[[Progress], object]

__version__: Final[str]

@final
class Dataset:
    @property
    def ordinals(self) -> NDArray[np.int64]: ...
    @property
    def schema(self) -> dict[str, str]: ...
    @property
    def metadata(self) -> dict[str, Any]: ...
    @property
    def is_keyed(self) -> bool: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def paths(self) -> list[str]: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, item: SupportsIndex | _Key, /) -> _Sample: ...
    @overload
    def __getitem__(self, item: slice, /) -> Dataset: ...
    def __getitems__(self, indices: _Indices) -> list[_Sample]: ...
    def __iter__(self) -> Iterator[_Sample]: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_exception: object) -> None: ...
    def __reduce__(self) -> tuple[Callable[..., Dataset], tuple[Any, ...]]: ...
    def get_batch(self, indices: _Indices) -> Batch: ...
    def find(self, key: _Key) -> int | None: ...
    def keys(self) -> Keys: ...
    def select(self, indices: _Indices) -> Dataset: ...
    def filter(self, expression: str) -> Dataset: ...
    # A masked array if samples may lack the attribute.
    # The codes of an attribute of type category.
    def column(self, name: str) -> NDArray[Any]: ...
    # The texts of those codes.
    def categories(self, name: str) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def stats(self) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def _epoch(
        self,
        *,
        order: str = "auto",
        seed: int = 0,
        epoch: int = 0,
        batch_size: int = 256,
        rank: int = 0,
        world_size: int = 1,
        tail: str = "short",
        window_bytes: int | None = None,
        lanes: int | None = None,
        group: int | None = None,
        on_damage: str = "raise",
        state: str | None = None,
        followed: bool = False,
        planned: bool = False,
        weights: _Weights | None = None,
    ) -> Epoch: ...
    def _weights(self, weights: NDArray[np.float64], num_samples: int) -> _Weights: ...
    def _key_of(self, ordinal: int) -> bytes | None: ...

@final
class Keys:
    def __len__(self) -> int: ...
    def __getitem__(self, index: SupportsIndex, /) -> str: ...
    def __iter__(self) -> Iterator[str]: ...
    def __reversed__(self) -> Iterator[str]: ...
    def __contains__(self, key: _Key, /) -> bool: ...
    def tolist(self) -> list[str]: ...

@final
class _Weights:
    @property
    def num_samples(self) -> int: ...

@final
class Batch:
    @property
    def ordinals(self) -> NDArray[np.int64]: ...
    @property
    def positions(self) -> NDArray[np.int64]: ...
    @property
    def repeats(self) -> NDArray[np.int64]: ...
    @property
    def padded_count(self) -> int: ...
    @property
    def skipped(self) -> list[tuple[int, str]]: ...
    def __len__(self) -> int: ...
    # A column: an array for an attribute or a field of arrays, `Buffers` for a field of bytes, a list for one of text.
    @overload
    def __getitem__(self, name: str, /) -> Any: ...
    @overload
    def __getitem__(self, place: SupportsIndex, /) -> _Sample: ...
    def __iter__(self) -> Iterator[str]: ...
    def __contains__(self, name: str, /) -> bool: ...
    def keys(self) -> list[str]: ...
    def to_dict(self) -> dict[str, Any]: ...
    def tolist(self) -> list[_Sample]: ...

@final
class Image:
    def __new__(
        cls,
        size: int | tuple[int, int],
        crop: Literal["resize", "center-crop", "random-resized-crop"] = "resize",
        *,
        scale: tuple[float, float] = ...,
        ratio: tuple[float, float] = ...,
        resize: int | None = None,
        flip: bool | float = ...,
        interpolation: Literal["bilinear", "bicubic"] = "bilinear",
        layout: Literal["NHWC", "NCHW"] = "NHWC",
        fast: bool = False,
        field: str | None = None,
        max_pixels: int = 89_478_485,
        on_error: Literal["raise", "skip"] = "raise",
    ) -> Self: ...
    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]: ...
    def _check(self, batch: Batch) -> None: ...
    def _decode(self, batch: Batch, seed: int, epoch: int, num_threads: int) -> Batch: ...

@final
class Buffers:
    def __new__(cls, items: Iterable[bytes | None]) -> Self: ...
    @property
    def missing(self) -> NDArray[np.bool_]: ...
    @property
    def block(self) -> NDArray[np.uint8]: ...
    @property
    def offsets(self) -> NDArray[np.int64]: ...
    @property
    def lengths(self) -> NDArray[np.int64]: ...
    def __len__(self) -> int: ...
    # None if a sample lacks the field. With `Any`, callers with other datasets need no check for it.
    @overload
    def __getitem__(self, index: SupportsIndex, /) -> memoryview | Any: ...
    @overload
    def __getitem__(self, index: slice, /) -> Buffers: ...
    def __iter__(self) -> Iterator[memoryview | Any]: ...
    def __reduce__(self) -> tuple[type[Buffers], tuple[list[bytes | None]]]: ...
    def tolist(self) -> list[bytes | Any]: ...

@final
class Memory:
    def __len__(self) -> int: ...
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Epoch:
    @property
    def order(self) -> str: ...
    @property
    def notice(self) -> str | None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Batch: ...
    def state_after(self, batch_count: int) -> str: ...
    def stats(self) -> dict[str, Any]: ...
    def close(self) -> None: ...

@final
class Writer:
    def __new__(
        cls,
        path: _Path,
        schema: dict[str, str] | None = None,
        *,
        keyed: bool = True,
        append: bool = False,
        overwrite: bool = False,
        metadata: Mapping[str, Any] | None = None,
        compress: Literal["lz4"] | None = None,
        chunk_bytes: int = ...,
        segment_bytes: int = ...,
        align: str = "1",
        hash_seed: int = 0,
        jobs: int | None = None,
    ) -> Self: ...
    @property
    def count(self) -> int: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        *_exception: BaseException | TracebackType | None,
    ) -> None: ...
    def write(self, **values: Any) -> None: ...
    def write_batch(self, **columns: Sequence[Any] | NDArray[Any] | Buffers) -> None: ...
    def close(self) -> None: ...
    def discard(self) -> None: ...

def open(
    paths: _Paths,
    *,
    io: Literal["auto", "direct", "buffered", "mapped"] = "auto",
    engine: Literal["auto", "uring", "pread"] = "auto",
    threads: int = 16,
    queue_bytes: int = ...,
    cache_bytes: int = 0,
    generation: int | None = None,
    allow_external: bool = False,
    timeout_s: float = 120.0,
    payload: Literal["bytes", "memoryview", "numpy"] = "bytes",
    keys: bool = False,
) -> Dataset: ...
def verify(
    path: _Path,
    *,
    jobs: int | None = None,
    allow_external: bool = False,
    progress: _OnProgress | None = None,
) -> dict[str, Any]: ...
def rebuild_index(path: _Path) -> None: ...
def _convert(
    sources: _Paths,
    destination: _Path,
    source: dict[str, Any],
    pack: dict[str, Any],
    *,
    transform: dict[str, Any] | None,
    chunk_bytes: int,
    align: str,
    overwrite: bool,
    resume: bool,
    restart: bool,
    progress: _OnProgress | None,
) -> Summary: ...
def _append(
    sources: _Paths,
    destination: _Path,
    source: dict[str, Any],
    pack: dict[str, Any],
    *,
    transform: dict[str, Any] | None,
    progress: _OnProgress | None,
) -> Summary: ...
def _adopt(
    sources: _Paths,
    destination: _Path,
    source: dict[str, Any],
    *,
    seed: int,
    chunk_bytes: int,
    skip_bad: bool,
    allow_external: bool,
    jobs: int | None,
    overwrite: bool,
    progress: _OnProgress | None,
) -> Summary: ...
def _export(
    dataset: Dataset,
    destination: _Path,
    to: str,
    *,
    shard_bytes: int | None,
    jobs: int | None,
    skip_damaged: bool,
    progress: _OnProgress | None,
) -> Exported: ...
def _reopen(arguments: dict[str, Any], fingerprint: str, selection: tuple[str, bytes]) -> Dataset: ...
def _reweigh(given: bytes, num_samples: int) -> _Weights: ...
def _draw_seed(seed: int, epoch: int, ordinal: int, repeat: int = 0) -> int: ...
def _run_command(arguments: Sequence[_Path]) -> int: ...
