"""The generators that a process has one of: those of `random`, `numpy.random` and, where it is imported, PyTorch.

They belong to the training loop. A transform that draws from them finds them seeded for its sample, and the loop finds
them afterwards as they were.
"""

from __future__ import annotations

import ctypes
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

# Of NumPy's struct of the generator MT19937: 624 words and a position.
_STATE_LEN = 625 * 4


def _torch() -> Any:
    torch = sys.modules.get("torch")
    # While another thread imports it, it has no generator yet.
    return getattr(torch, "default_generator", None)


def fingerprint() -> tuple[Any, ...]:
    """Something that differs after a draw. It takes much less time than NumPy's own function for the state."""
    torch = _torch()
    numpy = np.random.get_bit_generator()  # type: ignore[attr-defined]
    if type(numpy) is np.random.MT19937:
        of_numpy: Any = ctypes.string_at(numpy.ctypes.state_address, _STATE_LEN)
    else:
        of_numpy = repr(numpy.state)
    return random.getstate(), of_numpy, None if torch is None else torch.get_state().numpy().tobytes()


@contextmanager
def kept() -> Iterator[None]:
    """What is drawn inside does not change what is drawn afterwards."""
    of_random, of_numpy, torch = random.getstate(), np.random.get_state(legacy=False), _torch()
    of_torch = None if torch is None else torch.get_state()
    try:
        yield
    finally:
        random.setstate(of_random)
        np.random.set_state(of_numpy)
        if torch is None:
            # Imported inside, and seeded for a sample since: what a fresh import gives, a seed that nobody chose.
            torch = _torch()
            if torch is not None:
                torch.seed()
        else:
            torch.set_state(of_torch)


def seed(draw_seed: int) -> None:
    random.seed(draw_seed)
    # 32 bits each, the most significant first.
    np.random.seed([draw_seed >> shift & 0xFFFF_FFFF for shift in (96, 64, 32, 0)])
    torch = _torch()
    if torch is not None:
        torch.manual_seed(draw_seed >> 64)


def seeded(function: Callable[[], Any], draw_seed: int, *, watch: bool) -> tuple[Any, bool]:
    """The result of a function that finds the generators seeded, and whether it drew, if that is watched.

    The caller keeps what the generators were before.
    """
    had_torch = _torch() is not None
    seed(draw_seed)
    before = fingerprint() if watch else None
    result = function()
    if not had_torch and _torch() is not None:
        # The function imported PyTorch, and may have drawn before that was seeded.
        return seeded(function, draw_seed, watch=watch)
    return result, watch and fingerprint() != before
