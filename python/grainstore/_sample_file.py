"""One sample as a file object, for decoders that read parts of a long one."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from grainstore._core import _SampleBytes


class SampleFile(io.RawIOBase):
    """A sample, or one of its fields, as a binary file: made by `Dataset.open`.

    It reads what it is asked for and a little ahead, and stays valid without its dataset. Threads that use one file
    share its position.
    """

    mode = "rb"

    def __init__(self, sample: _SampleBytes, name: str) -> None:
        super().__init__()
        self._sample: _SampleBytes | None = sample
        self.name = name

    @property
    def size(self) -> int:
        """Its length in bytes."""
        return self._opened().size

    def readable(self) -> bool:
        self._opened()
        return True

    def seekable(self) -> bool:
        self._opened()
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """`size` bytes, fewer only at the end; all up to the end if it is negative or None."""
        sample = self._opened()
        return sample.read(sample.size if size is None or size < 0 else size)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Buffer, /) -> int:
        with memoryview(buffer) as view, view.cast("B") as bytes_of:
            found = self._opened().read(bytes_of.nbytes)
            bytes_of[: len(found)] = found
        return len(found)

    def write(self, buffer: Buffer, /) -> NoReturn:
        self._opened()
        raise io.UnsupportedOperation("write")

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise ValueError(f"whence is {whence}, expected 0, 1 or 2")
        position = self._opened().seek(offset, whence)
        if position is None:
            raise ValueError("the position is before the start of the sample")
        return position

    def tell(self) -> int:
        return self._opened().tell()

    def close(self) -> None:
        self._sample = None
        super().close()

    def __repr__(self) -> str:
        state = "closed" if self._sample is None else f"{self._sample.size} bytes"
        return f"<grainstore.SampleFile {self.name}: {state}>"

    def _opened(self) -> _SampleBytes:
        if self._sample is None:
            raise ValueError("I/O operation on closed file")
        return self._sample
