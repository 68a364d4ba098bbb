"""Batches as tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from grainstore import Batch, Buffers, InvalidOption


def tensors(batch: Batch) -> dict[str, Any]:
    """The columns of a batch by their names: numbers and arrays as tensors, texts and bytes as lists.

    Tensors have the types of the dataset, and their own memory; times are nanoseconds (int64), and arrays of any length
    stay a list of arrays.
    """
    return {name: _column(batch, name, column) for name, column in batch.to_dict().items()}


def _column(batch: Batch, name: str, column: Any) -> Any:
    if isinstance(column, np.ma.MaskedArray):
        mask = np.ma.getmaskarray(column)
        if mask.any():
            raise _missing(batch, name, column, mask)
        column = column.data
    if isinstance(column, np.ndarray):
        # Arrays of the dataset are read-only, which tensors cannot be; decoded pictures are not.
        own = column if column.flags.writeable else column.copy()
        if own.dtype.kind == "M":
            return torch.from_numpy(own.view(np.int64))
        if own.dtype.name == "bfloat16":
            return torch.from_numpy(own.view(np.int16)).view(torch.bfloat16)
        if own.dtype.kind == "V":
            raise InvalidOption(
                f'column "{name}" is of a type that this version of grainstore does not know, and a tensor cannot hold its '
                "bytes: omit it, dataset.select_columns([...]), convert it in a transform, or upgrade grainstore"
            )
        return torch.from_numpy(own)
    if isinstance(column, Buffers):
        return column.tolist()
    return column


def _missing(batch: Batch, name: str, column: Any, mask: np.ndarray[Any, Any]) -> InvalidOption:
    ordinal = int(batch.ordinals[np.nonzero(mask)[0][0]])
    present = f'sample["{name}"]'
    if column.ndim > 1:
        # A field of arrays, of which expressions know nothing.
        value = f'np.zeros({column.shape[1:]}, "{column.dtype}")'
        some = f'dataset.select([number for number, sample in enumerate(dataset) if sample["{name}"] is not None])'
    else:
        # Never a value that another sample may have: 0 is a class.
        value = str(np.iinfo(column.dtype).max) if column.dtype.kind == "u" else "-1"
        if column.dtype.kind == "b":
            # Neither of the two that a bool has.
            present = f"int({present})"
        some = f'dataset.filter("{name} is present")'
    return InvalidOption(
        f'sample {ordinal} has no value of "{name}", and a tensor cannot represent that: fill it in a transform, such as '
        f'lambda sample: {{**sample, "{name}": {value} if sample["{name}"] is None else {present}}}, or read the '
        f"samples that have one, {some}",
        ordinal=ordinal,
    )
