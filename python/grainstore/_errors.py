"""What can go wrong. Every exception of this package that is not a plain misuse of Python is an ``Error``."""

from __future__ import annotations

import errno
from typing import Any, ClassVar


_FACTS = ("path", "segment", "ordinal", "key", "offset", "errno")


def _rebuilt(kind: type[Error], message: str, facts: dict[str, Any]) -> Error:
    return kind(message, **facts)


class Error(Exception):
    """Anything that grainstore could not do. The message says what, where, and what was expected.

    ``path``, ``segment`` (its file), ``ordinal``, ``key`` and ``offset`` (bytes from the start of the file) say where,
    and ``errno`` what the system said, as far as that is known; else they are ``None``.
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
            # Declared here, it would be every Error's.
            setattr(self, "filename", path)

    def __str__(self) -> str:
        return str(self.args[0])

    # Loaders cross processes, and a plain exception would be made again from its message alone.
    def __reduce__(self) -> Any:
        facts = {name: getattr(self, name) for name in _FACTS}
        return _rebuilt, (type(self), str(self), facts)


class DatasetNotFound(Error, FileNotFoundError):
    """A dataset, or a file of it, is not there."""

    _errno = errno.ENOENT


class NotADataset(Error):
    """The path names something else, or a dataset that is not finished."""


class TooNew(Error):
    """A newer grainstore wrote it."""


class Damaged(Error):
    """A file of the dataset breaks a rule of the format."""


class DamagedSample(Damaged):
    """A sample's bytes are not what its entry says. ``ordinal``, ``key``, ``segment`` and ``offset`` say where."""


class UnreadableSample(Error, OSError):
    """A sample's bytes could not be fetched from the device."""


class ReadFailed(Error, OSError):
    """The system could not open, map or read a file, or did not answer in time."""


class OutOfMemory(Error, MemoryError):
    """The system has no memory for what was asked for."""


class NoSuchOrdinal(Error, IndexError):
    """There is no sample of this number."""


class NoSuchKey(Error, KeyError):
    """There is no sample of this key."""


class NoSuchName(Error, KeyError):
    """There is no attribute or field of this name."""


class InvalidOption(Error, ValueError):
    """An argument that cannot be, or does not suit the dataset."""


class InvalidExpression(Error, ValueError):
    """A filter that is none, or asks for what the dataset does not have."""


class InvalidState(Error, ValueError):
    """A saved state that is none, or of something else."""


class Closed(Error, ValueError):
    """The dataset or writer was closed."""


class Forked(Error, RuntimeError):
    """An epoch was begun by the process that this one was forked from."""


class WriteFailed(Error):
    """A dataset could not be written. Nothing stands under its name that was not there before."""


class AlreadyExists(WriteFailed, FileExistsError):
    """Something stands under the name already, and may not be replaced."""

    _errno = errno.EEXIST


class InvalidSample(WriteFailed, ValueError):
    """A sample does not agree with the schema, or its key stands twice."""


class ConvertFailed(Error):
    """A source could not be taken. Nothing stands under the dataset's name that was not there before."""


class ExportFailed(Error):
    """A dataset could not be written out. Nothing stands under the name that was not there before."""


class TransformFailed(Error):
    """A transform raised. ``ordinal`` and ``key`` name the sample, ``__cause__`` is what it raised."""
