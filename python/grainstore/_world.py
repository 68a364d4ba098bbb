"""The rank of this process and the number of ranks."""

from __future__ import annotations

import os
import sys

from grainstore._errors import InvalidOption

# The variables that launchers set for each process: torchrun and most others, then MPI's.
_VARIABLES = (("RANK", "WORLD_SIZE"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE"))


def rank_and_world_size(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """The given values, or else those of ``torch.distributed`` or ``jax.distributed`` if one of them is in use.

    Without them, the launcher's environment variables, or else a single process.
    """
    if (rank is None) != (world_size is None):
        missing = "rank" if rank is None else "world_size"
        raise InvalidOption(f"{missing} is missing: rank and world_size are given together, or neither")
    if rank is not None and world_size is not None:
        return rank, world_size
    torch = sys.modules.get("torch")
    if torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    jax = sys.modules.get("jax")
    # Older versions do not have this function.
    is_initialized = getattr(getattr(jax, "distributed", None), "is_initialized", None)
    if jax is not None and is_initialized is not None and is_initialized():
        return jax.process_index(), jax.process_count()
    for of_rank, of_size in _VARIABLES:
        given = [variable for variable in (of_rank, of_size) if variable in os.environ]
        if len(given) == 1:
            # Treating this as one process would make every process read everything.
            missing = of_size if given == [of_rank] else of_rank
            raise InvalidOption(f"the environment has {given[0]} and no {missing}: set both, or give rank and world_size")
        if given:
            return _number(of_rank), _number(of_size)
    return 0, 1


def _number(variable: str) -> int:
    text = os.environ[variable]
    if not text.isdecimal():
        raise InvalidOption(f"the environment variable {variable} is {text!r}, expected a number")
    return int(text)
