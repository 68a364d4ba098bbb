"""Training datasets, packed once: any sample in one I/O, any epoch freshly shuffled at the speed of the storage.

>>> import grainstore
>>> ds = grainstore.open("train.grain")                            # doctest: +SKIP
>>> ds[0], ds[-1], ds["n01440764/fish.jpg"], len(ds)               # doctest: +SKIP
>>> loader = grainstore.Loader(ds, batch_size=256, seed=7)         # doctest: +SKIP
>>> for batch in loader: batch["image"], batch["label"]            # doctest: +SKIP

``grainstore.torch``, ``grainstore.jax`` and ``grainstore.tensorflow`` are adapters for frameworks; import them by name.
"""

from grainstore._convert import adopt, append, convert, delete, export
from grainstore._core import Batch, Buffers, Dataset, Image, Keys, Writer, __version__, open, rebuild_index, verify
from grainstore._errors import (
    AlreadyExists,
    Closed,
    ConvertFailed,
    Damaged,
    DamagedSample,
    DatasetChanged,
    DatasetNotFound,
    Error,
    ExportFailed,
    Forked,
    InvalidExpression,
    InvalidOption,
    InvalidSample,
    InvalidState,
    NoSuchKey,
    NoSuchName,
    NoSuchOrdinal,
    NotADataset,
    OutOfMemory,
    ReadFailed,
    TooNew,
    TransformFailed,
    UndecodablePicture,
    UnreadableSample,
    WriteFailed,
)
from grainstore._loader import Loader
from grainstore._sample_file import SampleFile

__all__ = [
    "AlreadyExists",
    "Batch",
    "Buffers",
    "Closed",
    "ConvertFailed",
    "Damaged",
    "DamagedSample",
    "Dataset",
    "DatasetChanged",
    "DatasetNotFound",
    "Error",
    "ExportFailed",
    "Forked",
    "Image",
    "InvalidExpression",
    "InvalidOption",
    "InvalidSample",
    "InvalidState",
    "Keys",
    "Loader",
    "NoSuchKey",
    "NoSuchName",
    "NoSuchOrdinal",
    "NotADataset",
    "OutOfMemory",
    "ReadFailed",
    "SampleFile",
    "TooNew",
    "TransformFailed",
    "UndecodablePicture",
    "UnreadableSample",
    "WriteFailed",
    "Writer",
    "__version__",
    "adopt",
    "append",
    "convert",
    "delete",
    "export",
    "open",
    "rebuild_index",
    "verify",
]
