"""Packing, adopting and exporting, like the commands with the same names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypedDict

from grainstore import _core

Path = str | os.PathLike[str]
Sources = Path | Iterable[Path]
Format = Literal["auto", "folder", "tfrecord", "lmdb", "tar", "parquet", "list"]


class Progress(TypedDict):
    """The progress of long work. Unknown values are ``None``."""

    stage: str
    samples: int
    samples_total: int | None
    bytes: int
    bytes_total: int | None


OnProgress = Callable[[Progress], object]


class Summary(TypedDict):
    """What was packed, and what was skipped."""

    source: str
    samples: int
    segments: int
    payload_bytes: int
    stored_bytes: int
    fingerprint: str
    skipped: list[tuple[str, str]]
    duplicates: int
    resumed_samples: int
    notes: list[str]
    warnings: list[str]


class Exported(TypedDict):
    """What was exported, and what was skipped."""

    samples: int
    payload_bytes: int
    files: int
    skipped: list[tuple[int, str]]
    notes: list[str]


def _source(
    format: str,
    map: Mapping[str, str] | str | None,
    raw: bool,
    database: str | None,
    values: str,
    labels: Path | None,
) -> dict[str, Any]:
    if map is not None and not isinstance(map, str):
        map = ",".join(f"{name}={source}" for name, source in map.items())
    return {"format": format, "map": map, "raw": raw, "database": database, "values": values, "labels": labels}


def convert(
    sources: Sources,
    destination: Path,
    *,
    format: Format = "auto",
    map: Mapping[str, str] | str | None = None,
    raw: bool = False,
    database: str | None = None,
    values: Literal["auto", "raw", "datum"] = "auto",
    labels: Path | None = None,
    order: Literal["shuffled", "source"] = "shuffled",
    seed: int = 0,
    limit: int | None = None,
    skip_bad: bool = False,
    on_duplicate: Literal["error", "first", "last"] = "error",
    compress: Literal["lz4"] | None = None,
    chunk_bytes: int = 256 << 10,
    segment_bytes: int = 4 << 30,
    align: str = "1",
    jobs: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    restart: bool = False,
    progress: OnProgress | None = None,
) -> Summary:
    """Pack a folder, or TFRecord, LMDB, tar or Parquet files, into the dataset ``destination``.

    ``sources`` is a path or several: files, folders, or patterns such as ``"train-*.tar"``. Their format is
    recognized by content. The dataset appears when it is complete; the options are those of ``grainstore convert --help``.

    ``progress`` is called about ten times a second and once at the end, and stops the work by raising; so does Ctrl-C.
    The part that was finished by then is kept.
    """
    pack = _pack(order, seed, limit, skip_bad, on_duplicate, compress, segment_bytes, jobs)
    return _core._convert(
        sources,
        destination,
        _source(format, map, raw, database, values, labels),
        pack,
        chunk_bytes=chunk_bytes,
        align=align,
        overwrite=overwrite,
        resume=resume,
        restart=restart,
        progress=progress,
    )


def append(
    sources: Sources,
    destination: Path,
    *,
    format: Format = "auto",
    map: Mapping[str, str] | str | None = None,
    raw: bool = False,
    database: str | None = None,
    values: Literal["auto", "raw", "datum"] = "auto",
    labels: Path | None = None,
    order: Literal["shuffled", "source"] = "shuffled",
    seed: int = 0,
    limit: int | None = None,
    skip_bad: bool = False,
    on_duplicate: Literal["error", "first"] = "error",
    compress: Literal["lz4"] | None = None,
    segment_bytes: int = 4 << 30,
    jobs: int | None = None,
    progress: OnProgress | None = None,
) -> Summary:
    """Add samples to the dataset ``destination``, as a new generation. Open readers do not see them."""
    pack = _pack(order, seed, limit, skip_bad, on_duplicate, compress, segment_bytes, jobs)
    source = _source(format, map, raw, database, values, labels)
    return _core._append(sources, destination, source, pack, progress=progress)


def adopt(
    sources: Sources,
    destination: Path,
    *,
    format: Format = "auto",
    map: Mapping[str, str] | str | None = None,
    raw: bool = False,
    database: str | None = None,
    values: Literal["auto", "raw", "datum"] = "auto",
    seed: int = 0,
    chunk_bytes: int = 256 << 10,
    skip_bad: bool = False,
    allow_external: bool = False,
    jobs: int | None = None,
    overwrite: bool = False,
    progress: OnProgress | None = None,
) -> Summary:
    """Make a dataset of tar, TFRecord or LMDB files that stay where they are: only the index is written."""
    return _core._adopt(
        sources,
        destination,
        _source(format, map, raw, database, values, None),
        seed=seed,
        chunk_bytes=chunk_bytes,
        skip_bad=skip_bad,
        allow_external=allow_external,
        jobs=jobs,
        overwrite=overwrite,
        progress=progress,
    )


def export(
    dataset: _core.Dataset | Path,
    destination: Path,
    to: Literal["folder", "tar", "tfrecord", "lmdb", "parquet"],
    *,
    shard_bytes: int | None = None,
    jobs: int | None = None,
    skip_damaged: bool = False,
    progress: OnProgress | None = None,
) -> Exported:
    """Write a dataset, or a view of one such as ``ds.filter("label != 3")``, in another format.

    Samples come in the dataset's order, whatever the order of the view.
    """
    if not isinstance(dataset, _core.Dataset):
        with _core.open(dataset) as opened:
            return export(
                opened,
                destination,
                to,
                shard_bytes=shard_bytes,
                jobs=jobs,
                skip_damaged=skip_damaged,
                progress=progress,
            )
    return _core._export(
        dataset, destination, to, shard_bytes=shard_bytes, jobs=jobs, skip_damaged=skip_damaged, progress=progress
    )


def _pack(
    order: str,
    seed: int,
    limit: int | None,
    skip_bad: bool,
    on_duplicate: str,
    compress: str | None,
    segment_bytes: int,
    jobs: int | None,
) -> dict[str, Any]:
    return {
        "order": order,
        "seed": seed,
        "limit": limit,
        "skip_bad": skip_bad,
        "on_duplicate": on_duplicate,
        "compress": compress,
        "segment_bytes": segment_bytes,
        "jobs": jobs,
    }
