"""Packing, adopting and exporting, like the commands with the same names."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypedDict

import numpy as np

from grainstore import _core
from grainstore._errors import ConvertFailed, InvalidOption
from grainstore._map_workers import Function, MapWorkers

Path = str | os.PathLike[str]
Sources = Path | Iterable[Path]
Format = Literal["auto", "folder", "tfrecord", "lmdb", "tar", "parquet", "list", "dataset"]


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
    left_out: int
    duplicates: int
    content_duplicates: int
    content_duplicates_with_other_attributes: int
    left_out_keys: int
    left_out_files: int
    resumed_samples: int
    notes: list[str]
    warnings: list[str]


class Deleted(TypedDict):
    """What was deleted, and what it took."""

    deleted: int
    deleted_bytes: int
    samples: int
    copied_bytes: int
    replaced_bytes: int
    freed: bool
    fingerprint: str


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
    no_labels: bool,
    only: Iterable[str] = (),
    exclude: Iterable[str] = (),
    categories: Iterable[str] = (),
    subset: str | None = None,
    allow_external: bool = False,
    attributes: Path | None = None,
    attributes_key: str = "key",
) -> dict[str, Any]:
    if map is not None and not isinstance(map, str):
        map = ",".join(f"{name}={source}" for name, source in map.items())
    if subset is not None and not isinstance(subset, str):
        raise TypeError(
            f'subset is an expression such as "label == 3", not {type(subset).__name__}; samples that are chosen otherwise: give '
            "them an attribute, and choose by it, or leave the others out with transform, which returns None for them"
        )
    return {
        "format": format,
        "map": map,
        "raw": raw,
        "database": database,
        "values": values,
        "labels": labels,
        "no_labels": no_labels,
        "only": _names("only", only),
        "exclude": _names("exclude", exclude),
        "categories": _names("categories", categories),
        "subset": subset,
        "allow_external": allow_external,
        "attributes": attributes,
        "attributes_key": attributes_key,
    }


def _names(option: str, names: Iterable[str]) -> list[str]:
    listed = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    for name in listed:
        if not isinstance(name, str):
            raise TypeError(f"{option} is a name or several, not {type(name).__name__}")
    return listed


def _transformed(
    transform: Function | None, workers: int | None, schema: Mapping[str, str] | None, metadata: Mapping[str, Any] | None
) -> MapWorkers | None:
    if transform is not None:
        return MapWorkers(transform, len(os.sched_getaffinity(0)) if workers is None else workers, schema)
    for name, value in (("workers", workers), ("schema", schema), ("metadata", metadata)):
        if value is not None:
            raise InvalidOption(f"{name} describes what a transform makes, and there is no transform")
    return None


def _run(
    workers: MapWorkers | None, metadata: Mapping[str, Any] | None, work: Callable[[dict[str, Any] | None], Summary]
) -> Summary:
    """Call ``work`` with the workers for the library, which are running meanwhile."""
    if workers is None:
        return work(None)
    try:
        with workers:
            return work({"workers": workers, "words": workers.words, "metadata": metadata})
    except (ConvertFailed, InvalidOption) as error:
        explained = workers.explained(error)
        if explained is error:
            raise
        raise explained  # noqa: B904


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
    no_labels: bool = False,
    only: Iterable[str] = (),
    exclude: Iterable[str] = (),
    categories: Iterable[str] = (),
    subset: str | None = None,
    attributes: Path | None = None,
    attributes_key: str = "key",
    order: Literal["shuffled", "source"] = "shuffled",
    seed: int = 0,
    limit: int | None = None,
    skip_bad: bool = False,
    on_duplicate: Literal["error", "first", "last"] = "error",
    dedupe: bool = False,
    compress: Literal["lz4"] | None = None,
    chunk_bytes: int = 256 << 10,
    segment_bytes: int = 4 << 30,
    align: str = "1",
    jobs: int | None = None,
    allow_external: bool = False,
    overwrite: bool = False,
    resume: bool = False,
    restart: bool = False,
    transform: Function | None = None,
    workers: int | None = None,
    schema: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    progress: OnProgress | None = None,
) -> Summary:
    """Pack a folder, or TFRecord, LMDB, tar or Parquet files, or other datasets, into the dataset ``destination``.

    ``sources`` is a path or several: files, folders, datasets, or patterns such as ``"train-*.tar"``. Their format is
    recognized by content. The dataset appears when it is complete; the options are those of ``grainstore convert --help``.

    ``only`` and ``exclude`` name what is taken of a source of any format, and what is left out: features, columns,
    extensions, attributes and fields, by their names in the source or in the dataset. The key stays unless ``exclude``
    names its column.

    ``categories`` names columns of text in Parquet files that become attributes of type ``category``; other texts are
    fields, except those that the file keeps in a dictionary.

    ``attributes`` is a CSV, TSV, JSON Lines or Parquet table with the samples' keys in its column ``attributes_key``; its
    other columns become attributes, texts as categories. A sample without a row has missing values; the summary's notes
    count these samples, and rows without a sample.

    ``dedupe`` packs every content once: a sample with the bytes of one before it in the source, in every field, is skipped,
    whatever its key and attributes. The summary counts these as ``content_duplicates``, and those with other attributes
    than the one that stays as ``content_duplicates_with_other_attributes``. The source is read once more, first.

    ``progress`` is called about ten times a second and once at the end, and stops the work by raising; so does Ctrl-C.
    The part that was finished by then is kept.

    ``transform`` is a function of a sample (a dictionary with its ``"key"``) that returns the sample to be packed in its
    place, with the same key unless it sets another, or ``None`` to leave it out. It runs in ``workers`` processes, by
    default one for each core, and may depend on the sample alone: then the dataset has the same bytes for any number of
    workers, and ``resume`` works. The types of what it returns are those of the first samples, or ``schema``;
    ``metadata`` replaces the source's. Without it the names of numbers (``class_names`` of ``label``, ``NAME_names`` of
    ``NAME``) are those of the source: a number without a name is refused, and a warning says if numbers were changed. If
    they mean other classes, give ``metadata={"class_names": [...]}``. An exception in it stops the conversion with ``TransformFailed``, which names the
    sample and its file; with ``skip_bad`` the sample is skipped and listed. With ``dedupe``, and with ``on_duplicate``
    other than ``"error"``, the function runs twice for a sample: what it returns is compared.
    """
    pack = _pack(order, seed, limit, skip_bad, on_duplicate, dedupe, compress, segment_bytes, jobs)
    source = _source(
        format,
        map,
        raw,
        database,
        values,
        labels,
        no_labels,
        only,
        exclude,
        categories,
        subset,
        allow_external,
        attributes,
        attributes_key,
    )
    return _run(
        _transformed(transform, workers, schema, metadata),
        metadata,
        lambda transform: _core._convert(
            sources,
            destination,
            source,
            pack,
            transform=transform,
            chunk_bytes=chunk_bytes,
            align=align,
            overwrite=overwrite,
            resume=resume,
            restart=restart,
            progress=progress,
        ),
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
    no_labels: bool = False,
    only: Iterable[str] = (),
    exclude: Iterable[str] = (),
    categories: Iterable[str] = (),
    subset: str | None = None,
    attributes: Path | None = None,
    attributes_key: str = "key",
    order: Literal["shuffled", "source"] = "shuffled",
    seed: int = 0,
    limit: int | None = None,
    skip_bad: bool = False,
    on_duplicate: Literal["error", "first"] = "error",
    dedupe: bool = False,
    compress: Literal["lz4"] | None = None,
    segment_bytes: int = 4 << 30,
    jobs: int | None = None,
    transform: Function | None = None,
    workers: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    allow_external: bool = False,
    progress: OnProgress | None = None,
) -> Summary:
    """Add samples to the dataset ``destination``, as a new generation. Open readers do not see them.

    ``dedupe`` also skips samples whose content the dataset holds. Only stored samples with the length and checksum of a new
    one are read for that; if the dataset is compressed, those with its length.

    ``transform``, ``workers`` and ``metadata`` are as in ``convert``; what the function returns has the types of the
    dataset. Of ``metadata`` only the names of numbers are used: new ones follow those of the dataset.
    """
    pack = _pack(order, seed, limit, skip_bad, on_duplicate, dedupe, compress, segment_bytes, jobs)
    source = _source(
        format,
        map,
        raw,
        database,
        values,
        labels,
        no_labels,
        only,
        exclude,
        categories,
        subset,
        allow_external,
        attributes,
        attributes_key,
    )
    return _run(
        _transformed(transform, workers, None, metadata),
        metadata,
        lambda transform: _core._append(sources, destination, source, pack, transform=transform, progress=progress),
    )


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
        _source(format, map, raw, database, values, None, False),
        seed=seed,
        chunk_bytes=chunk_bytes,
        skip_bad=skip_bad,
        allow_external=allow_external,
        jobs=jobs,
        overwrite=overwrite,
        progress=progress,
    )


def delete(
    dataset: Path,
    *,
    subset: str | None = None,
    keys: Iterable[str | bytes] | None = None,
    ordinals: Iterable[int] | None = None,
    dry_run: bool = False,
    free: bool = False,
    progress: OnProgress | None = None,
) -> Deleted:
    """Delete samples of a dataset, as a new generation without them: those that ``subset`` chooses, or of some keys or
    ordinals.

    Segments that hold none of them stay as they are, what stays of the others is copied. Nothing changes until everything
    is done. The old files stay until the next ``append`` or ``delete``, for readers that have the dataset open;
    ``free=True`` removes them at once. ``dry_run=True`` only counts. States that were saved before are refused.
    """
    return _core._delete(
        dataset,
        subset=subset,
        keys=None if keys is None else _keys(keys),
        ordinals=None if ordinals is None else _ordinals(ordinals),
        dry_run=dry_run,
        free=free,
        progress=progress,
    )


def _keys(keys: Iterable[str | bytes]) -> list[bytes]:
    """Keys as bytes. One key is no list of keys, though its characters could be."""
    if isinstance(keys, (str, bytes)):
        raise TypeError(f"keys is a list of keys, not one key: [{keys!r}]")
    found = []
    for key in keys:
        if not isinstance(key, (str, bytes)):
            raise TypeError(f"a key is str or bytes, not {type(key).__name__}")
        found.append(key.encode() if isinstance(key, str) else key)
    return found


def _ordinals(ordinals: Iterable[int]) -> list[int]:
    """Ordinals as integers: what is only nearly one, such as 2.7 or a value of a mask, would name another sample."""
    found = []
    for ordinal in ordinals:
        if isinstance(ordinal, (bool, np.bool_)) or not hasattr(ordinal, "__index__"):
            raise TypeError(f"an ordinal is an integer, not {type(ordinal).__name__}")
        number = operator.index(ordinal)
        if not 0 <= number < 1 << 64:
            raise InvalidOption(f"no sample has the ordinal {number}")
        found.append(number)
    return found


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

    Samples come in the dataset's order, whatever the order of the view; of a view of some columns
    (``ds.select_columns``) these are written, and always the key.
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
    dedupe: bool,
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
        "dedupe": dedupe,
        "compress": compress,
        "segment_bytes": segment_bytes,
        "jobs": jobs,
    }
