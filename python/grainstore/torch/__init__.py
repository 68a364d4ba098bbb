"""grainstore in PyTorch.

``MapDataset`` is read by number, in the order of a sampler. ``IterableDataset`` gives epochs in grainstore's own order,
which reads the storage at full speed; it can be shared among ranks and workers, and resumed within an epoch.
``ImageFolder`` replaces torchvision's.

>>> import grainstore.torch                                                                  # doctest: +SKIP
>>> from torch.utils.data import DataLoader                                                  # doctest: +SKIP
>>> dataset = grainstore.torch.IterableDataset("train.grain", batch_size=256, seed=7)        # doctest: +SKIP
>>> for batch in DataLoader(dataset, batch_size=None, num_workers=4): batch["label"]         # doctest: +SKIP
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(f"grainstore.torch needs PyTorch, which cannot be imported ({error}): pip install torch") from error

from grainstore.torch._image_folder import ImageFolder
from grainstore.torch._iterable import IterableDataset
from grainstore.torch._map import MapDataset

__all__ = ["ImageFolder", "IterableDataset", "MapDataset"]
