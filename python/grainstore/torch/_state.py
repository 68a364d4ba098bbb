"""States of an epoch: one position for all ranks, also where workers read it.

A worker's state is that of one of several readers. The samples that all of them returned are the beginning of the epoch
only when every worker returned equally many batches: then any number of workers and ranks can resume. At any other time
only as many workers as before can, each from its own state.
"""

from __future__ import annotations

from typing import Any

from grainstore import InvalidState

State = dict[str, Any]


def checked(state: object) -> State:
    """The state, if it is a result of ``IterableDataset.state_dict`` or has such results in it."""
    if not isinstance(state, dict):
        raise InvalidState(f"a state is the result of state_dict, not {type(state).__name__}")
    if "_snapshot" in state:
        return _joined(state)
    if "_num_yielded" in state:
        return checked(state.get("dataset_state"))
    if "grainstore_state" in state:
        raise InvalidState(
            "this is the state of a grainstore.Loader, which resumes it: an IterableDataset takes what its own state_dict, or "
            "that of a StatefulDataLoader, returned"
        )
    if not isinstance(state.get("loader"), dict):
        raise InvalidState("a state is the result of state_dict, a dictionary with num_workers, world_size and loader")
    return state


def _joined(state: State) -> State:
    """The position of all workers, from a state of torchdata's ``StatefulDataLoader``, which has one of each worker."""
    if state.get("_steps_since_snapshot"):
        raise InvalidState(
            "the workers' states are older than the loader's: save with snapshot_every_n_steps=1, or give this state to "
            "StatefulDataLoader.load_state_dict"
        )
    workers = state["_snapshot"].get("_worker_snapshots", {}).values()
    states = [checked(worker.get("dataset_state")) for worker in workers]
    if not states:
        raise InvalidState("this state of a StatefulDataLoader has no states of workers")
    first = states[0]
    if any(other != first for other in states):
        positions = [other["loader"].get("position") for other in states]
        raise InvalidState(
            f"the {len(states)} workers had not returned equally many batches when this was saved (they were at the "
            f"positions {positions}), so another number of workers cannot resume from it: give it to the load_state_dict "
            "of a StatefulDataLoader with the same number of workers, ranks and batch size, or use a state that was saved "
            f"after a multiple of {len(states)} batches"
        )
    return {**first, "num_workers": 0}


def check_same(state: State, expected: State) -> None:
    """Refuse a worker's state where something differs that decides what the other workers returned."""
    # The position of a single reader is that of the epoch.
    names = expected if expected["num_workers"] > 1 else ["num_workers"]
    for name in names:
        if state.get(name) != expected[name]:
            raise InvalidState(
                f"the state is of {name}={state.get(name)}, and this is read with {name}={expected[name]}. A worker has only "
                "its own state: give the state of the StatefulDataLoader to dataset.load_state_dict, which takes those of "
                "other workers, ranks and batch sizes, instead of the loader's; or use the same values as when it was saved"
            )
