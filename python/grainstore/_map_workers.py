"""Worker processes that apply a function to the samples of a conversion.

The threads of the library that read a source each give a sample to a free worker and wait for the result, so the order
in which workers finish decides nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import queue
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Any, Self

import numpy as np

from grainstore._errors import ConvertFailed, InvalidOption, TransformFailed

Sample = dict[str, Any]
Function = Callable[[Sample], Sample | None]

# How long a worker has to end after it was asked to; then it is killed.
_PATIENCE_S = 1.0

# How often a wait for a worker looks whether the conversion was stopped.
_TURN_S = 0.1


class RemoteTraceback(Exception):
    """The traceback of an exception in a worker, as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class _Worker:
    """A process, and this end of the pipe to it."""

    def __init__(self, process: BaseProcess, connection: Connection) -> None:
        self.process = process
        self.connection = connection


class MapWorkers:
    """Processes that wait for samples. Its methods may be called from many threads."""

    def __init__(self, function: Function, count: int, schema: Mapping[str, str] | None) -> None:
        if not callable(function):
            raise TypeError(f"transform is a function of a sample, not {type(function).__name__}")
        if count < 1:
            raise InvalidOption(f"workers is {count}, expected 1 or more")
        self._function = function
        self._count = count
        self._schema = schema
        self._workers: list[_Worker] = []
        self._free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._failures: list[tuple[str, str, bytes | None]] = []

    @property
    def words(self) -> str:
        """Which function this is, for a conversion that is resumed."""
        name = getattr(self._function, "__qualname__", type(self._function).__qualname__)
        module = getattr(self._function, "__module__", None)
        schema = None if self._schema is None else dict(self._schema)
        return f"transform: {module}.{name}, schema {schema}"

    def __enter__(self) -> Self:
        context: Any = multiprocessing.get_context()
        forks = context.get_start_method() == "fork"
        if not forks:
            _check_picklable(self._function)
        try:
            for _ in range(self._count):
                ours, theirs = context.Pipe()
                # A forked worker inherits our ends; if it kept them, no worker would notice that this process ended.
                inherited = [*(worker.connection for worker in self._workers), ours] if forks else []
                arguments = (self._function, theirs, inherited)
                process = context.Process(target=_work, args=arguments, name="grainstore-map", daemon=True)
                process.start()
                theirs.close()
                self._workers.append(_Worker(process, ours))
                self._free.put(self._workers[-1])
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the processes, also those that are in the middle of a sample."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(_PATIENCE_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def take(self, timeout_s: float) -> _Worker | None:
        """A free worker, or None after ``timeout_s`` seconds."""
        try:
            return self._free.get(timeout=timeout_s)
        except queue.Empty:
            return None

    def send(self, worker: _Worker, sample: Sample) -> None:
        try:
            worker.connection.send(sample)
        except OSError as error:
            raise self._died(worker, sample) from error

    def ready(self, worker: _Worker, timeout_s: float) -> bool:
        """Whether the worker has answered within ``timeout_s`` seconds, or died."""
        return worker.connection.poll(timeout_s)

    def receive(self, worker: _Worker, sample: Sample) -> tuple[str, Any]:
        """The answer: ("made", the result), ("left out", None) or ("failed", why, in words)."""
        try:
            answer = worker.connection.recv()
        except (EOFError, OSError) as error:
            raise self._died(worker, sample) from error
        self._free.put(worker)
        if answer[0] == "failed":
            _, why, trace = answer
            self._failures.append((why, trace, _key_bytes(sample)))
            return "failed", why
        return answer[0], answer[1]

    def begin(
        self,
        samples: Sequence[Sample],
        given: Mapping[str, str],
        expected: Mapping[str, str] | None,
        stopped: Callable[[], bool],
    ) -> tuple[dict[str, str], int]:
        """The schema of the results, and about how many times as long as its sample a result is.

        samples: the first of the source. given: the source's schema. expected: the schema of the dataset to append to.
        """
        results = []
        given_len = made_len = 1
        for sample in samples:
            worker = self._free.get()
            self.send(worker, sample)
            while not self.ready(worker, _TURN_S):
                if stopped():
                    raise ConvertFailed("the conversion was stopped")
            kind, result = self.receive(worker, sample)
            if kind == "made":
                results.append(result)
                given_len += _bytes_of(sample)
                made_len += _bytes_of(result)
        growth = max(1, -(-made_len // given_len))
        schema = expected or self._schema
        if schema is not None:
            return dict(schema), growth
        if not results:
            raise self.explained(
                InvalidOption(
                    f"the transform made nothing of the first {len(samples)} samples, so the types of what it makes are not "
                    'known: give them, such as schema={"image": "bytes", "label": "int64"}'
                )
            )
        return _schema_of(results, given), growth

    def explained(self, error: Exception) -> Exception:
        """The error of the conversion; with the worker's traceback as its cause where a function raised."""
        for why, trace, key in self._failures:
            if why in str(error) or isinstance(error, InvalidOption):
                message = str(error) if why in str(error) else f"{error}; the first one: {why}"
                failed = TransformFailed(message, path=getattr(error, "path", None), key=key)
                failed.__cause__ = RemoteTraceback(trace)
                return failed
        return error

    def _died(self, worker: _Worker, sample: Sample) -> ConvertFailed:
        worker.process.join(_PATIENCE_S)
        code = worker.process.exitcode
        how = "ended" if code is None else f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        if code == 1 and multiprocessing.get_start_method() != "fork":
            how += " (a script that calls convert does so under if __name__ == '__main__':, because workers import it)"
        named = "" if "key" not in sample else f' of sample "{sample["key"]}"'
        return ConvertFailed(f"a worker process {how} during the transform{named}", key=_key_bytes(sample))


def _key_bytes(sample: Sample) -> bytes | None:
    key = sample.get("key")
    return key.encode("utf-8", "surrogateescape") if isinstance(key, str) else None


def _check_picklable(function: Function) -> None:
    try:
        pickle.dumps(function)
    except Exception as error:
        raise InvalidOption(
            f"transform cannot be sent to worker processes ({error}): define it at the top of a module, not in a function "
            "and not as a lambda"
        ) from error


def _work(function: Function, connection: Connection, inherited: list[Connection]) -> None:
    """What a worker does until its pipe is closed."""
    # Ctrl-C reaches the whole group of processes; the one that waits for the results decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for other in inherited:
        other.close()
    parent = os.getppid()
    while os.getppid() == parent:
        try:
            sample = connection.recv()
        except (EOFError, OSError):
            return
        key = sample.get("key")
        try:
            result = function(sample)
            answer = ("left out", None) if result is None else ("made", _plain(result, key))
            connection.send(answer)
        except Exception as error:
            why = f"the transform raised {type(error).__name__}: {error}"
            connection.send(("failed", why, traceback.format_exc()))


def _plain(result: Any, key: Any) -> Sample:
    """The result with arrays of NumPy in place of those of others, and with the key of its sample unless it has one."""
    if not isinstance(result, dict):
        raise TypeError(f"it returned {type(result).__name__}, expected a dictionary, or None to leave the sample out")
    plain = {name: _plain_value(value) for name, value in result.items()}
    if key is not None:
        plain.setdefault("key", key)
    return plain


def _plain_value(value: Any) -> Any:
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    # `item` would cut zeros at their end off.
    if isinstance(value, np.bytes_):
        return bytes(value)
    if isinstance(value, np.str_):
        return "".join(value)
    if isinstance(value, (np.ndarray, np.generic)) or value is None:
        return value
    if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
        return _plain_value(np.asarray(value))
    return value


def _bytes_of(sample: Sample) -> int:
    return sum(value.nbytes if isinstance(value, np.ndarray) else len(value) if isinstance(value, (bytes, str)) else 8 for value in sample.values())


def _schema_of(results: Sequence[Sample], given: Mapping[str, str]) -> dict[str, str]:
    """The types of the names of the results; a number or a text that the source has, too, keeps its type."""
    names = dict.fromkeys(name for result in results for name in result if name != "key")
    schema = {}
    for name in names:
        values = [result[name] for result in results if result.get(name) is not None]
        if not values and name not in given:
            raise InvalidOption(f'the transform gives no "{name}" for the first samples, so its type is not known: give schema=')
        schema[name] = _type_of(name, values, given.get(name)) if values else given[name]
    return schema


_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_FLOATS = ("float16", "bfloat16", "float32", "float64")


# What an array or a number of NumPy has that a dataset stores: by the letters of NumPy's kinds.
_STORED = "biufMV"


def _type_of(name: str, values: Sequence[Any], given: str | None) -> str:
    kinds = {type(value) for value in values}
    for value in values:
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in _STORED:
            what = {"U": "texts", "S": "bytes", "O": "Python objects", "c": "complex numbers"}.get(value.dtype.kind, "")
            raise InvalidOption(
                f'the transform gives "{name}" an array of {what or value.dtype}, and arrays are of numbers: give numbers, or '
                "one text or bytes, such as json.dumps(...)"
            )
    if kinds == {bytes}:
        return "bytes"
    if kinds == {str}:
        return given if given in ("str", "category") else "str"
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return given if given in _INTEGERS else "int64"
    if kinds <= {int, float}:
        return given if given in _FLOATS else "float64"
    if all(isinstance(value, np.generic) for value in values) and len(kinds) == 1:
        return "timestamp" if isinstance(values[0], np.datetime64) else values[0].dtype.name
    if kinds == {np.ndarray} and len({value.dtype for value in values}) == 1:
        shapes = {value.shape for value in values}
        element = values[0].dtype.name
        if len(shapes) == 1:
            return f"{element}[{','.join(map(str, values[0].shape))}]"
        if len({shape[1:] for shape in shapes}) == 1 and len({len(shape) for shape in shapes}) == 1:
            return f"{element}[{''.join(f',{size}' for size in values[0].shape[1:])}]"
    found = ", ".join(sorted({type(value).__name__ for value in values}))
    if kinds & {dict, set, frozenset, tuple, complex} or not kinds <= {bytes, str, bool, int, float, np.ndarray}:
        raise InvalidOption(
            f'the transform gives "{name}" values of type {found}, and a dataset has bytes, texts, numbers and arrays: give '
            "one of these, such as json.dumps(...)"
        )
    raise InvalidOption(f'the transform gives "{name}" values that have no type in common ({found}): give schema=')
