"""Batches of what a transform returns: the values of many samples as one array, member by member."""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Callable, KeysView, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from grainstore._errors import InvalidOption

_NUMBERS = (np.ndarray, np.generic, bool, int, float, complex)
_REMEDY = "let the transform return one form for all samples, or give the Loader collate=..., a function of a list of samples"


def stack(samples: Sequence[Any], ordinals: Sequence[int]) -> Any:
    """Stack the values of samples, at least one, which have these numbers in the dataset.

    Dictionaries, tuples, lists and dataclasses are stacked by their members, PyTorch's tensors into a tensor, arrays and
    numbers into an array. Anything else makes a list, and so do members of which some are ``None``.
    """
    for sample, ordinal in zip(samples, ordinals):
        if sample is None:
            raise InvalidOption(
                f"the transform returned None for sample {ordinal}: a loader leaves no samples out (Dataset.filter and "
                "Dataset.select choose them before); what a transform makes is what it returns",
                ordinal=ordinal,
            )
    return _Stack(ordinals).of(list(samples), "")


class _Stack:
    """Stacks members of samples; errors name the samples and the path to the member."""

    def __init__(self, ordinals: Sequence[int]) -> None:
        self._ordinals = ordinals

    def of(self, values: list[Any], path: str) -> Any:
        first = values[0]
        if any(value is None for value in values):
            return values
        if isinstance(first, Mapping):
            self._check(values, path, Mapping, "the names", lambda value: value.keys())
            return {name: self.of([value[name] for value in values], f"{path}[{name!r}]") for name in first}
        if dataclasses.is_dataclass(first) and not isinstance(first, type):
            self._check(values, path, type(first))
            # Its own checks are of a sample's values, not of a batch's.
            made = copy.copy(first)
            for field in dataclasses.fields(first):
                members = [getattr(value, field.name) for value in values]
                object.__setattr__(made, field.name, self.of(members, f"{path}.{field.name}"))
            return made
        if isinstance(first, (tuple, list)):
            self._check(values, path, (tuple, list), "the length", len)
            members = [self.of(list(members), f"{path}[{place}]") for place, members in enumerate(zip(*values, strict=True))]
            if hasattr(first, "_fields"):
                return type(first)(*members)
            return members if isinstance(first, list) else tuple(members)
        # Not imported here: whoever makes tensors has imported it.
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(first, torch.Tensor):
            self._check(values, path, torch.Tensor, "the shape", lambda value: tuple(value.shape))
            return torch.stack(values)
        if isinstance(first, _NUMBERS):
            self._check(values, path, _NUMBERS)
            arrays = [np.asarray(value) for value in values]
            self._check(arrays, path, np.ndarray, "the shape", lambda array: array.shape)
            is_masked = any(isinstance(value, np.ma.MaskedArray) for value in values)
            return np.ma.stack(values) if is_masked else self._numbers(arrays, path)
        return values

    def _numbers(self, arrays: list[np.ndarray[Any, Any]], path: str) -> np.ndarray[Any, Any]:
        stacked = np.stack(arrays)
        if stacked.dtype.kind != "f" or any(array.dtype.kind not in "biu" for array in arrays):
            return stacked
        # Some integers have a sign, and some are too large for one: NumPy would make floats, which do not hold them.
        for place, array in enumerate(arrays):
            if array.dtype.kind == "i" and (array < 0).any():
                raise InvalidOption(
                    f"what the transform returned cannot be stacked: result{path} has integers of uint64, and one below 0 for "
                    f"sample {self._ordinals[place]}: {_REMEDY}",
                    ordinal=self._ordinals[place],
                )
        return np.stack(arrays, dtype=np.uint64, casting="unsafe")

    def _check(
        self, values: list[Any], path: str, kinds: Any, what: str = "", form: Callable[[Any], Any] = lambda value: None
    ) -> None:
        """Refuse values that are not all of these types, or differ in their form."""
        wanted = form(values[0])
        for place, value in enumerate(values):
            if not isinstance(value, kinds):
                self._fail(path, "the type", type(values[0]).__name__, place, type(value).__name__)
            if form(value) != wanted:
                self._fail(path, what, wanted, place, form(value))

    def _fail(self, path: str, what: str, wanted: object, place: int, found: object) -> NoReturn:
        first, other = self._ordinals[0], self._ordinals[place]
        raise InvalidOption(
            f"what the transform returned cannot be stacked: {what} of result{path} is {_shown(wanted)} for sample {first}, "
            f"and {_shown(found)} for sample {other}: {_REMEDY}",
            ordinal=other,
        )


def _shown(form: object) -> str:
    """Names as a list of them."""
    return str(list(form)) if isinstance(form, KeysView) else str(form)
