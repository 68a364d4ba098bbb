"""For TensorFlow: epochs of a ``grainstore.Loader`` as a ``tf.data.Dataset``."""

from __future__ import annotations

import atexit
import itertools
import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from grainstore._core import Batch
from grainstore._errors import InvalidOption, InvalidState
from grainstore._loader import Loader

try:
    import tensorflow as tf  # type: ignore[import-untyped, import-not-found, unused-ignore]
except ImportError as error:
    raise ImportError(
        "grainstore.tensorflow needs TensorFlow, which is not installed: pip install tensorflow (or tensorflow-cpu)"
    ) from error

__all__ = ["dataset"]

# Samples that are passed to TensorFlow together if it gets them one by one.
_UNIT = 256


def dataset(
    loader: Loader,
    *,
    columns: Sequence[str] | None = None,
    fill: Mapping[str, Any] | None = None,
    states: bool = False,
    output_signature: Any = None,
) -> Any:
    """A ``tf.data.Dataset`` with the elements of the loader; each iteration of it is the loader's next epoch.

    An element is a dictionary with a tensor for each field and attribute: fields of bytes, texts and keys are
    ``tf.string``, array fields have their type and shape, attributes are scalars. Pictures that the loader decodes
    (``decode``) are ``tf.uint8`` of the shape of ``grainstore.Image``. Times are ``tf.int64`` (nanoseconds since
    1970), categories are codes. Arrays of any length (``float32[]``) and attributes of types that only a later version
    knows have no tensor: omit them with ``columns``, or convert them in a ``transform``.

    With a ``batch_size`` each tensor has one more dimension in front, of known length if every batch is full
    (``drop_last`` or ``tail="pad"``). The cardinality is the length of an epoch, and unknown if the loader is in the
    middle of one.

    columns: the names to include; all by default. Other columns cost nothing.
    fill: names and the values that replace missing ones, such as ``b""`` or ``-1``. Without it, a sample that lacks a
        value ends the iteration with ``tf.errors.InvalidArgumentError``, since TensorFlow has no missing values.
    states: whether an element is a pair of the above and a scalar ``tf.string``, the loader's state after this element:
        ``loader.load_state_dict(json.loads(state.numpy()))`` resumes from there. TensorFlow reads ahead, so
        ``loader.state_dict()`` is ahead of training; this state is exact.
    output_signature: the form of what a ``transform`` or ``collate`` of the loader makes, as
        ``tf.data.Dataset.from_generator`` takes it. Elements are then those of the loader, unchanged.
    """
    if not isinstance(loader, Loader):
        raise TypeError(f"loader is a grainstore.Loader, not {type(loader).__name__}")
    own = loader.transform is not None or loader.collate is not None
    if own and output_signature is None:
        raise InvalidOption(
            "output_signature is missing: the loader has a transform or collate, whose results only you know; "
            "expected a tf.TensorSpec for each part of an element"
        )
    if not own and output_signature is not None:
        raise InvalidOption("output_signature describes what a transform or collate makes, and the loader has neither")
    if own and (columns is not None or fill is not None):
        raise InvalidOption("columns and fill are about columns, and the loader has a transform or collate instead")
    convert = None if own else _Columns(loader, columns, fill or {})
    unit = _UNIT if convert is not None and loader.batch_size is None else None
    signature = output_signature if convert is None else convert.signature
    if states:
        signature = (signature, tf.TensorSpec((None,) if unit else (), tf.string))
    whole = _begins_an_epoch(loader)
    # TensorFlow would wrap the error of an epoch that cannot begin.
    loader._check_even()

    def elements() -> Iterator[Any]:
        if whole and not _begins_an_epoch(loader):
            raise InvalidState(
                "the loader is in the middle of an epoch, and this tf.data.Dataset was made for whole ones: call "
                "grainstore.tensorflow.dataset after load_state_dict"
            )
        given = _given(loader, states)
        if unit is not None:
            given = _groups(given, unit)
        return _exit.until(_tensors(given, convert, states))

    made = tf.data.Dataset.from_generator(elements, output_signature=signature)
    if unit is not None:
        made = made.unbatch()
    # Skipped samples would be missing from the count.
    known = whole and not (loader.batch_size is None and _skips(loader))
    return made.apply(tf.data.experimental.assert_cardinality(len(loader))) if known else made


class _Columns:
    """Converts a batch, or a list of samples, to one array per column."""

    def __init__(self, loader: Loader, names: Sequence[str] | None, fill: Mapping[str, Any]) -> None:
        if isinstance(names, str):
            raise TypeError(f"columns is a sequence of names, not the one name {names!r}")
        # A batch without samples reads nothing, and has all columns with their types and shapes.
        empty = loader.dataset.get_batch([])
        if loader.decode is not None:
            empty = loader.decode._decode(empty, 0, 0, 1)
        full = loader._tail != "short" and not _skips(loader)
        length = loader.batch_size if full else None
        self.signature: dict[str, Any] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        # The types of columns of numbers; ``None`` for bytes or text.
        self._dtypes: dict[str, Any] = {}
        # The codes of categories, by their texts.
        self._codes: dict[str, dict[str, int]] = {}
        schema = loader.dataset.schema
        for name in empty.keys() if names is None else names:
            column = empty[name]
            kind = schema.get(name, "")
            numbers = isinstance(column, np.ndarray)
            if (numbers and column.dtype.kind == "V" and kind != "bfloat16") or (isinstance(column, list) and "[" in kind):
                raise InvalidOption(
                    f"column {name!r}: there is no tensor for {kind}: omit the column with columns=[...], or convert it in "
                    f"a transform of the loader, with an output_signature"
                )
            if numbers:
                column = _times_as_numbers(column)
                if kind == "category" and loader.batch_size is None:
                    self._codes[name] = {text: code for code, text in enumerate(loader.dataset.categories(name))}
            self._shapes[name] = column.shape[1:] if numbers else ()
            self._dtypes[name] = column.dtype if numbers else None
            dtype = tf.as_dtype(column.dtype) if numbers else tf.string
            self.signature[name] = tf.TensorSpec((length, *self._shapes[name]), dtype)
        self._fill = {name: self._checked_fill(name, value) for name, value in fill.items()}

    def __call__(self, batch: Batch | list[dict[str, Any]]) -> dict[str, Any]:
        if isinstance(batch, Batch):
            return {name: self._array(name, batch[name]) for name in self.signature}
        return {name: self._array(name, [sample[name] for sample in batch]) for name in self.signature}

    def _checked_fill(self, name: str, value: Any) -> Any:
        if name not in self.signature:
            raise InvalidOption(f"fill: there is no column {name!r} (there are: {', '.join(self.signature)})")
        dtype = self._dtypes[name]
        if dtype is None:
            if not isinstance(value, (str, bytes)):
                raise InvalidOption(f"fill: {name!r} is of bytes or text, and {value!r} is neither")
            return value
        given = np.asarray(value)
        with np.errstate(invalid="ignore", over="ignore"):
            kept = given.astype(dtype) if given.dtype.kind in "biuf" else None
        # A float may be rounded; an integer or bool must be exact.
        if kept is None or not (dtype.kind == "f" or np.array_equal(kept, given)):
            raise InvalidOption(f"fill: {name!r} is of {dtype}, which cannot hold {value!r}")
        return np.broadcast_to(kept, self._shapes[name])

    def _array(self, name: str, column: Any) -> Any:
        if isinstance(column, np.ndarray):
            column = _times_as_numbers(column)
        if isinstance(column, np.ma.MaskedArray):
            missing = np.ma.getmaskarray(column).reshape(len(column), -1).any(axis=1)
            whole = column.data.copy() if missing.any() else column.data
            if missing.any():
                whole[missing] = self._replacement(name, missing)
            return whole
        if isinstance(column, np.ndarray):
            return column
        values: list[Any] = column if isinstance(column, list) else column.tolist()
        missing = np.fromiter((value is None for value in values), bool, len(values))
        if name in self._codes:
            values = [None if value is None else self._codes[name][value] for value in values]
        # A sample has its times as NumPy's.
        values = [value.astype(np.int64) if isinstance(value, np.datetime64) else value for value in values]
        if missing.any():
            value = self._replacement(name, missing)
            values = [value if lacking else given for given, lacking in zip(values, missing, strict=True)]
        if self._dtypes[name] is not None:
            return np.array(values, dtype=self._dtypes[name]).reshape(-1, *self._shapes[name])
        # Objects, since NumPy's own byte strings lose trailing zeros.
        return np.array([_bytes_of(value) for value in values], dtype=object)

    def _replacement(self, name: str, missing: Any) -> Any:
        if name in self._fill:
            return self._fill[name]
        raise InvalidOption(
            f"column {name!r}: {int(missing.sum())} of {len(missing)} samples lack a value, and TensorFlow has no missing "
            f"values: give a replacement, fill={{{name!r}: ...}}, or omit the column with columns=[...]"
        )


def _skips(loader: Loader) -> bool:
    """Whether samples may be left out of the loader's batches."""
    return loader._on_damage == "skip" or (loader.decode is not None and loader.decode._skips)


def _times_as_numbers(column: Any) -> Any:
    return column.view(np.int64) if column.dtype.kind == "M" else column


def _bytes_of(value: str | bytes | memoryview) -> bytes:
    # Keys that are not UTF-8 are str with surrogates; payloads may be other types than bytes.
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)


def _begins_an_epoch(loader: Loader) -> bool:
    """Whether the next pass is a whole epoch."""
    return loader._resume is None or bool(loader._resume["position"] == 0)


def _given(loader: Loader, states: bool) -> Iterator[tuple[Any, Any]]:
    """The elements of the loader, each with the state after it.

    One element is held back: a caller that knows the cardinality, such as Keras, requests exactly that many and never the
    end, and the pass must have ended by then, so that the next one is the next epoch.
    """

    def state() -> bytes:
        return json.dumps(loader.state_dict()).encode() if states else b""

    held: tuple[Any, bytes] | None = None
    for element in loader:
        if held is not None:
            yield held
        held = (element, state())
    if held is not None:
        yield held[0], state()


def _tensors(given: Iterator[tuple[Any, Any]], convert: _Columns | None, states: bool) -> Iterator[Any]:
    for element, state in given:
        made = element if convert is None else convert(element)
        yield (made, np.array(state, dtype=object)) if states else made


def _groups(given: Iterator[tuple[Any, Any]], size: int) -> Iterator[tuple[Any, Any]]:
    """Lists of elements with the lists of their states."""
    while group := list(itertools.islice(given, size)):
        yield [element for element, _ in group], [state for _, state in group]


# Longer than a thread needs to return from here into TensorFlow, which cannot be observed.
_RETURN_S = 0.2


class _Exit:
    """Keeps TensorFlow's threads out of Python while the interpreter ends.

    A thread that waits for Python's lock at that time never returns, and TensorFlow waits for that thread: a process that
    stops in the middle of an epoch would hang instead of ending.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._iterations = 0
        self._busy = 0
        self._is_near = False
        atexit.register(self._begin)

    def until(self, elements: Iterator[Any]) -> Iterator[Any]:
        """The elements, until the interpreter starts to end."""
        self._add(iterations=1)
        try:
            while self._enter():
                try:
                    element = next(elements, self)
                finally:
                    self._add(busy=-1)
                if element is self:
                    return
                yield element
        finally:
            self._add(iterations=-1)

    def _enter(self) -> bool:
        with self._changed:
            self._busy += not self._is_near
            return not self._is_near

    def _add(self, *, iterations: int = 0, busy: int = 0) -> None:
        with self._changed:
            self._iterations += iterations
            self._busy += busy
            self._changed.notify_all()

    def _begin(self) -> None:
        with self._changed:
            self._is_near = True
            underway = self._iterations > 0
            self._changed.wait_for(lambda: self._busy == 0)
        if underway:
            time.sleep(_RETURN_S)


_exit = _Exit()
