"""The exceptions of the package. All of them are an ``Error``, except plain misuse of Python such as ``TypeError``."""

from __future__ import annotations

import errno
from typing import Any, ClassVar


_FACTS = ("path", "segment", "ordinal", "key", "offset", "errno")


def _rebuilt(kind: type[Error], message: str, facts: dict[str, Any]) -> Error:
    return kind(message, **facts)


class Error(Exception):
    """Base class of grainstore's exceptions. The message states what failed, where, and what was expected.

    ``path``, ``segment`` (its file), ``ordinal``, ``key`` and ``offset`` (bytes from the start of the file) give the
    location, and ``errno`` the error number of the system; values that are not known are ``None``.
    """

    _errno: ClassVar[int | None] = None

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        segment: str | None = None,
        ordinal: int | None = None,
        key: bytes | None = None,
        offset: int | None = None,
        errno: int | None = None,
    ) -> None:
        super().__init__(message)
        self.path = path
        self.segment = segment
        self.ordinal = ordinal
        self.key = key
        self.offset = offset
        self.errno = self._errno if errno is None else errno
        if isinstance(self, OSError):
            # Not an assignment, which would declare the attribute for every Error.
            setattr(self, "filename", path)

    def __str__(self) -> str:
        return str(self.args[0])

    # Data loaders pickle exceptions across processes; by default only the message would be restored.
    def __reduce__(self) -> Any:
        facts = {name: getattr(self, name) for name in _FACTS}
        return _rebuilt, (type(self), str(self), facts)


class DatasetNotFound(Error, FileNotFoundError):
    """A dataset, or one of its files, does not exist."""

    _errno = errno.ENOENT


class NotADataset(Error):
    """The path names something else, or a dataset that is not finished."""


class DatasetChanged(Error):
    """The dataset was changed or replaced since it was opened, and a file that was not read before is another one now."""


class TooNew(Error):
    """The dataset was written by a newer version of grainstore, or by one before version 1."""


class Damaged(Error):
    """A file of the dataset breaks a rule of the format."""


class DamagedSample(Damaged):
    """A sample's bytes do not match its entry. ``ordinal``, ``key``, ``segment`` and ``offset`` give the location."""


class UnreadableSample(Error, OSError):
    """A sample's bytes could not be read from the device."""


class ReadFailed(Error, OSError):
    """The system could not open, map or read a file, or did not answer in time."""


class OutOfMemory(Error, MemoryError):
    """There is not enough memory for the request."""


class NoSuchOrdinal(Error, IndexError):
    """There is no sample with this number."""


class NoSuchKey(Error, KeyError):
    """There is no sample with this key."""


class NoSuchName(Error, KeyError):
    """There is no attribute or field with this name."""


class InvalidOption(Error, ValueError):
    """An argument is invalid, or does not fit the dataset."""


class InvalidExpression(Error, ValueError):
    """A filter expression is invalid, or refers to something that the dataset does not have."""


class InvalidState(Error, ValueError):
    """A saved state is invalid, or belongs to another dataset, view, seed or order."""


class Closed(Error, ValueError):
    """The dataset or writer was closed."""


class Forked(Error, RuntimeError):
    """An epoch or writer was started by the process that this one was forked from."""


class WriteFailed(Error):
    """A dataset could not be written. Nothing new exists under its name, unless only the last sync of its folder failed."""


class AlreadyExists(WriteFailed, FileExistsError):
    """Something already exists under the name, and may not be replaced."""

    _errno = errno.EEXIST


class InvalidSample(WriteFailed, ValueError):
    """A sample does not match the schema, or its key was already used."""


class ConvertFailed(Error):
    """A source could not be packed. Nothing new exists under the dataset's name."""


class ExportFailed(Error):
    """A dataset could not be exported. Nothing new exists under the name."""


class TransformFailed(Error):
    """A transform raised. ``ordinal`` and ``key`` name the sample, ``__cause__`` is the original exception."""


class UndecodablePicture(Error, ValueError):
    """A picture could not be decoded. ``ordinal`` and ``key`` name the sample."""
