"""Labelled pictures, like torchvision's ImageFolder."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np
import torch.utils.data

from grainstore import Dataset, InvalidOption
from grainstore._loader import Source, opened
from grainstore.torch._sample_draws import SampleDraws
from grainstore.torch._samples import Sample, TorchTransform, failed

# The same as in torchvision's ImageFolder.
_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


class ImageFolder(torch.utils.data.Dataset[tuple[Any, Any]]):
    """Replaces ``torchvision.datasets.ImageFolder``, for a dataset that ``grainstore.convert`` made of the folder.

    ``dataset[i]`` is a picture (PIL, RGB) and the number of its class, or what ``transform`` and ``target_transform``
    make of them. The numbers are torchvision's: by class, then by path; files without the extension of a
    picture are skipped (unless no file has one). Exceptions of ``loader`` or a transform become
    ``grainstore.TransformFailed``, which names the sample.

    root: a result of ``grainstore.open``, a view of it, or a path (or several) to be opened. Its samples need keys, an
        attribute ``label``, and the metadata ``class_names``.
    transform: if it has a second parameter, it gets a ``torch.Generator`` seeded by ``seed``, the epoch and the sample
        alone. Call ``set_epoch`` before each epoch; see ``MapDataset``.
    loader: a function of a file's bytes (not of its path) that gives a picture; by default Pillow.

    classes, class_to_idx: as torchvision's. targets: the numbers of the classes, which may be changed. samples, imgs: pairs
        of key and number of the class at first; changing them is a ``TypeError``.
    """

    def __init__(
        self,
        root: Source,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[[Any], Any] | None = None,
        loader: Callable[[bytes], Any] | None = None,
        *,
        seed: int = 0,
    ) -> None:
        self.root = root
        self.transform = transform
        self.target_transform = target_transform
        self.loader = loader or _pillow()
        self._draws = SampleDraws(seed)
        dataset = opened(root)
        self.classes = _class_names(dataset)
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self._field = _field(dataset)
        labels = _labels(dataset, len(self.classes))
        keys = dataset.keys().tolist()
        order = _order(keys, labels)
        self._samples = _Unchanged((keys[place], int(labels[place])) for place in order)
        self.targets = [target for _, target in self._samples]
        # Samples by their index in this dataset.
        self._view = dataset.select(order)

    @property
    def samples(self) -> list[tuple[str, int]]:
        return self._samples

    @samples.setter
    def samples(self, value: object) -> None:
        _refuse_change()

    @property
    def imgs(self) -> list[tuple[str, int]]:
        return self._samples

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        made: tuple[Any, Any] = self._made([index], lambda: [self._view[index]])[0]
        return made

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Any, Any]]:
        """The pictures with these numbers, read together."""
        return self._made(indices, lambda: self._view.__getitems__(indices))

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, here and in the workers of every ``DataLoader``."""
        self._draws.set_epoch(epoch)

    def __repr__(self) -> str:
        return f"<grainstore.torch.ImageFolder of {self._view!r}, {len(self.classes)} classes>"

    def _made(self, indices: Sequence[int], read: Callable[[], list[Sample]]) -> list[Any]:
        transform = None if self.transform is None else self._draws.transform(self.transform)
        one = partial(self._one, transform)
        with_generator = transform is not None and transform.takes_generator
        return self._draws.make(self._view, indices, read, one, with_generator=with_generator)

    def _one(self, transform: TorchTransform | None, index: int, sample: Sample, draw_seed: int) -> tuple[Any, Any]:
        target: Any = self.targets[index]
        what = "the loader"
        try:
            picture = self.loader(sample[self._field])
            what = "the transform"
            if transform is not None:
                picture = transform(picture, draw_seed)
            what = "the target_transform"
            if self.target_transform is not None:
                target = self.target_transform(target)
        except Exception as error:
            raise failed(self._view, index, what, error) from error
        return picture, target


def _refuse_change(*_given: object, **_named: object) -> NoReturn:
    raise TypeError(
        "the samples of an ImageFolder cannot be changed: set targets[i] for another class, and give it a view of the "
        "dataset, such as ds.select(numbers), for other samples"
    )


class _Unchanged(list[tuple[str, int]]):
    """A list that refuses changes, which nothing would see: pictures are read by number."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse_change
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse_change

    def __reduce_ex__(self, _protocol: object) -> Any:
        return _Unchanged, (list(self),)


def rgb(file: bytes) -> Any:
    """The picture in a file as a PIL image in RGB, like torchvision's default loader, but from bytes."""
    from PIL import Image

    with Image.open(io.BytesIO(file)) as picture:
        return picture.convert("RGB")


def _pillow() -> Callable[[bytes], Any]:
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        why = f"ImageFolder needs Pillow, which cannot be imported ({error}): pip install pillow, or give it a loader"
        raise ImportError(why) from error
    return rgb


def _lacks(dataset: Dataset, what: str) -> InvalidOption:
    return InvalidOption(
        f"{', '.join(dataset.paths)}: {what}, expected keys, an attribute label and the metadata class_names, as "
        "grainstore.convert makes them of a folder whose files all lie at CLASS/FILE; MapDataset takes any dataset"
    )


def _class_names(dataset: Dataset) -> list[str]:
    if not dataset.is_keyed:
        raise _lacks(dataset, "its samples have no keys")
    if "label" not in dataset.schema:
        raise _lacks(dataset, f"it has no label (it has {', '.join(dataset.schema)})")
    names = dataset.metadata.get("class_names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _lacks(dataset, "its metadata has no list class_names")
    return names


def _labels(dataset: Dataset, class_count: int) -> Any:
    labels = dataset.column("label")
    wrong = np.ma.getmaskarray(labels) | ~np.isin(np.ma.getdata(labels), np.arange(class_count))
    if wrong.any():
        place = int(np.flatnonzero(wrong)[0])
        found = "none" if np.ma.getmaskarray(labels)[place] else labels[place]
        raise _lacks(dataset, f"the label of sample {dataset.ordinals[place]} is {found}, of {class_count} classes")
    return np.ma.getdata(labels)


def _field(dataset: Dataset) -> str:
    fields = [name for name, kind in dataset.schema.items() if kind == "bytes"]
    if "image" in fields:
        return "image"
    if len(fields) != 1:
        raise _lacks(dataset, f"it has {len(fields)} fields of bytes, of which none is named image")
    return fields[0]


def _order(keys: list[str], labels: Any) -> list[int]:
    """Indices sorted by class, folder and file, the order in which torchvision walks a tree."""
    places = [place for place, key in enumerate(keys) if key.lower().endswith(_EXTENSIONS)] or range(len(keys))
    by_path = {place: keys[place].rpartition("/") for place in places}
    return sorted(by_path, key=lambda place: (labels[place], by_path[place]))
