"""Decoded pictures against Pillow and torchvision, which decode whole pictures first."""

import io
import re
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
import torchvision.transforms.v2.functional as F

import grainstore
from grainstore import Image
from grainstore.torch import IterableDataset


def photo(width, height, seed=0):
    """Smooth shapes and a little noise, as in photographs."""
    draws = np.random.default_rng(seed)
    small = draws.integers(0, 256, (height // 24 + 2, width // 24 + 2, 3), np.uint8)
    large = np.asarray(PIL.Image.fromarray(small).resize((width, height), PIL.Image.BICUBIC), np.int16)
    return PIL.Image.fromarray((large + draws.integers(-6, 7, large.shape)).clip(0, 255).astype(np.uint8))


def encoded(picture, form="JPEG", **options):
    file = io.BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()


def packed(path, pictures):
    with grainstore.Writer(path, {"image": "bytes", "label": "int32"}, keyed=True) as writer:
        for number, picture in enumerate(pictures):
            writer.write(key=f"{number:04}", image=picture, label=number)
    return grainstore.open(path)


def one(tmp_path, picture, image):
    loader = grainstore.Loader(packed(tmp_path / "one.grain", [picture]), 1, decode=image)
    (batch,) = loader
    return batch["image"][0]


def rgb(data):
    return np.asarray(PIL.Image.open(io.BytesIO(data)).convert("RGB"))


def resized(data, size):
    whole = torch.from_numpy(rgb(data).copy()).permute(2, 0, 1)
    return F.resize(whole, size, antialias=True).permute(1, 2, 0).numpy()


def difference(first, second):
    return int(np.abs(first.astype(np.int16) - second.astype(np.int16)).max())


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_whole_jpeg_has_the_pixels_of_pillow(tmp_path, subsampling, progressive):
    data = encoded(photo(93, 61), quality=90, subsampling=subsampling, progressive=progressive)
    assert difference(one(tmp_path, data, Image((61, 93))), rgb(data)) == 0


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_a_random_part_is_that_of_the_whole_picture(tmp_path, subsampling, progressive):
    """The part that was drawn is found again by its place: every pixel of this picture tells its row and column."""
    rows, columns = np.mgrid[0:240, 0:320]
    tilted = np.stack([columns * 255 // 319, rows * 255 // 239, (rows + columns) % 256 // 4], 2).astype(np.uint8)
    data = encoded(PIL.Image.fromarray(tilted), quality=95, subsampling=subsampling, progressive=progressive)
    dataset = packed(tmp_path / "one.grain", [data] * 60)
    # A part of the size of the result is not scaled: 60 x 60 of 240 x 320.
    area = 3600 / (240 * 320)
    image = Image(60, "random-resized-crop", scale=(area, area), ratio=(1.0, 1.0))
    whole = rgb(data)
    places = set()
    for pictures in grainstore.Loader(dataset, 20, decode=image):
        for picture in pictures["image"]:
            row, column = int(picture[0, 0, 1]) * 239 // 255, int(picture[0, 0, 0]) * 319 // 255
            near = [(r, c) for r in range(max(0, row - 9), min(181, row + 10)) for c in range(max(0, column - 9), min(261, column + 10))]
            found = [place for place in near if np.array_equal(whole[place[0] : place[0] + 60, place[1] : place[1] + 60], picture)]
            assert found, (row, column)
            places.add(found[0])
    assert len(places) > 40


@pytest.mark.parametrize("size", [(500, 375), (375, 500), (97, 300), (40, 30)])
def test_scaled_pictures_are_those_of_torchvision(tmp_path, size):
    data = encoded(photo(*size), quality=90)
    assert difference(one(tmp_path, data, Image((64, 80))), resized(data, [64, 80])) <= 2


def test_the_middle_is_that_of_torchvision(tmp_path):
    data = encoded(photo(333, 250), quality=90)
    whole = torch.from_numpy(rgb(data).copy()).permute(2, 0, 1)
    expected = F.center_crop(F.resize(whole, [128], antialias=True), [112, 112]).permute(1, 2, 0).numpy()
    assert difference(one(tmp_path, data, Image(112, "center-crop")), expected) <= 2


def test_a_reduced_jpeg_is_near_the_whole_one(tmp_path):
    data = encoded(photo(800, 600), quality=90)
    fast = one(tmp_path, data, Image(64, fast=True)).astype(np.float64)
    assert np.abs(fast - resized(data, [64, 64])).mean() < 3


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1", "RGB", "I;16"])
def test_colours_of_png_are_those_of_pillow(tmp_path, mode):
    picture = photo(40, 30)
    if mode == "I;16":
        picture = PIL.Image.fromarray((np.arange(1200, dtype=np.uint16) % 400).reshape(30, 40))
    elif mode == "RGBA":
        picture.putalpha(100)
    else:
        picture = picture.convert("L").convert(mode) if mode == "LA" else picture.convert(mode)
    data = encoded(picture, "PNG")
    assert difference(one(tmp_path, data, Image((30, 40))), rgb(data)) == 0


@pytest.mark.parametrize("mode", ["L", "CMYK"])
def test_grey_and_cmyk_jpegs_are_those_of_pillow(tmp_path, mode):
    data = encoded(photo(40, 30).convert(mode), quality=90)
    assert difference(one(tmp_path, data, Image((30, 40))), rgb(data)) <= 1


@pytest.mark.parametrize("options", [{"lossless": True}, {"quality": 80}])
def test_webp_is_that_of_pillow(tmp_path, options):
    data = encoded(photo(80, 60), "WEBP", **options)
    assert difference(one(tmp_path, data, Image((60, 80))), rgb(data)) <= (0 if "lossless" in options else 8)


def test_pictures_do_not_depend_on_threads_ranks_or_a_resume(tmp_path):
    dataset = packed(tmp_path / "many.grain", [encoded(photo(80, 60, seed), quality=85) for seed in range(40)])
    image = Image(32, "random-resized-crop", flip=True)

    def pictures(loaders):
        return {int(o): p.tobytes() for loader in loaders for b in loader for o, p in zip(b.ordinals, b["image"], strict=True)}

    expected = pictures([grainstore.Loader(dataset, 8, seed=3, decode=image, num_threads=1)])
    assert len(expected) == 40 and len(set(expected.values())) == 40
    assert pictures([grainstore.Loader(dataset, 5, seed=3, decode=image, num_threads=4)]) == expected
    ranks = [grainstore.Loader(dataset, 4, seed=3, decode=image, rank=rank, world_size=2, tail="short") for rank in range(2)]
    assert pictures(ranks) == expected
    begun = grainstore.Loader(dataset, 8, seed=3, decode=image)
    batches = iter(begun)
    first = {int(o): p.tobytes() for b in (next(batches), next(batches)) for o, p in zip(b.ordinals, b["image"], strict=True)}
    resumed = grainstore.Loader(dataset, 8, seed=3, decode=image)
    resumed.load_state_dict(begun.state_dict())
    assert first | pictures([resumed]) == expected
    assert pictures([grainstore.Loader(dataset, 8, seed=3, epoch=1, decode=image)]) != expected


def test_each_repeat_of_a_sample_is_cut_differently_and_the_same_every_time(tmp_path):
    dataset = packed(tmp_path / "few.grain", [encoded(photo(80, 60, seed), quality=85) for seed in range(4)])
    image = Image(32, "random-resized-crop", flip=True)

    def pictures(loaders):
        return {
            (int(ordinal), int(repeat)): picture.tobytes()
            for loader in loaders
            for batch in loader
            for ordinal, repeat, picture in zip(batch.ordinals, batch.repeats, batch["image"], strict=True)
        }

    options = {"seed": 3, "decode": image, "weights": [1, 2, 3, 4], "num_samples": 48}
    expected = pictures([grainstore.Loader(dataset, 8, num_threads=1, **options)])
    assert len(expected) == 48 and len(set(expected.values())) == 48
    assert pictures([grainstore.Loader(dataset, 5, num_threads=3, **options)]) == expected
    assert pictures([grainstore.Loader(dataset, 4, rank=rank, world_size=2, **options) for rank in range(2)]) == expected
    # The first occurrence has the draws that it has where it is the only one.
    once = pictures([grainstore.Loader(dataset, 4, seed=3, decode=image)])
    shared = once.keys() & expected.keys()
    assert shared and all(expected[place] == once[place] for place in shared)


def test_workers_give_the_same_pictures_as_tensors(tmp_path):
    dataset = packed(tmp_path / "many.grain", [encoded(photo(80, 60, seed), quality=85) for seed in range(16)])
    image = Image(32, "random-resized-crop", layout="NCHW")

    def pictures(workers):
        data = IterableDataset(dataset, 4, seed=3, decode=image)
        loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=workers)
        found = {}
        for batch in loader:
            assert batch["image"].shape == (len(batch["label"]), 3, 32, 32) and batch["image"].dtype == torch.uint8
            found |= {int(label): bytes(picture.numpy()) for label, picture in zip(batch["label"], batch["image"], strict=True)}
        return found

    assert len(pictures(0)) == 16 and pictures(2) == pictures(0)


@pytest.mark.parametrize("damage", ["short", "other", "empty"])
def test_a_picture_that_does_not_decode_is_named_or_skipped(tmp_path, damage):
    pictures = [encoded(photo(80, 60, seed), quality=85) for seed in range(8)]
    pictures[5] = {"short": pictures[5][: len(pictures[5]) // 2], "other": b"GIF89a...", "empty": b""}[damage]
    dataset = packed(tmp_path / "many.grain", pictures)
    with pytest.raises(grainstore.UndecodablePicture, match=r'sample 5 \(key "0005"\): ') as caught:
        list(grainstore.Loader(dataset, 4, decode=Image(32), order="sequential"))
    assert caught.value.ordinal == 5 and caught.value.key == b"0005"
    loader = grainstore.Loader(dataset, 4, decode=Image(32, on_error="skip"), order="sequential")
    for _ in range(2):
        first, second = loader
        assert (loader.stats()["undecoded_samples"], loader.stats()["skipped_samples"]) == (1, 0)
    assert second["label"].tolist() == [4, 6, 7] and second["image"].shape == (3, 32, 32, 3)
    assert [ordinal for ordinal, _ in second.skipped] == [5] and not first.skipped


def test_a_large_picture_is_refused_before_it_is_decoded(tmp_path):
    data = encoded(PIL.Image.new("RGB", (3000, 2000)), "PNG")
    with pytest.raises(grainstore.UndecodablePicture, match="3000 x 2000 pixels, and at most 1000000"):
        one(tmp_path, data, Image(8, max_pixels=1_000_000))


def test_a_transform_gets_the_decoded_picture(tmp_path):
    dataset = packed(tmp_path / "two.grain", [encoded(photo(80, 60, seed)) for seed in range(2)])
    transform = lambda sample: {"mean": float(sample["image"].mean()), "label": sample["label"]}
    (batch,) = grainstore.Loader(dataset, 2, decode=Image(16), transform=transform)
    assert batch["mean"].shape == (2,) and sorted(batch["label"].tolist()) == [0, 1]


def test_the_blocks_of_the_page_run_one_after_the_other(tmp_path, monkeypatch):
    page = Path(__file__).parents[2] / "docs/python/pictures.md"
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    names = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)


def test_options_that_make_no_sense_are_refused(tmp_path):
    for options in ({"crop": "middle"}, {"flip": 2.0}, {"layout": "HWC"}, {"crop": "random-resized-crop", "scale": (0.5, 2.0)}, {"resize": 10}, {"on_error": "zero"}):
        with pytest.raises(grainstore.InvalidOption):
            Image(224, **options)
    with grainstore.Writer(tmp_path / "text.grain", {"text": "str"}, keyed=False) as writer:
        writer.write(text="a")
    with pytest.raises(grainstore.InvalidOption, match="which field"):
        grainstore.Loader(grainstore.open(tmp_path / "text.grain"), decode=Image(8))


FORMS = (("JPEG", {"quality": 90}), ("PNG", {}), ("WEBP", {"lossless": True}))


def test_verify_lists_the_pictures_that_do_not_decode(tmp_path):
    whole = photo(90, 60)
    pictures = [encoded(whole, form, **options) for form, options in FORMS for _ in range(3)]
    bad = {1: pictures[1][: len(pictures[1]) // 2], 4: pictures[4][:-40], 7: pictures[7][: len(pictures[7]) // 2], 9: b""}
    pictures += [pictures[0]] * 3
    with packed(tmp_path / "d.grain", [bad.get(number, picture) for number, picture in enumerate(pictures)]) as ds:
        loader = grainstore.Loader(ds, 4, decode=Image(16, on_error="skip"))
        trained = {int(ordinal) for batch in loader for ordinal in batch.ordinals}
    assert trained == set(range(len(pictures))) - set(bad)
    assert grainstore.verify(tmp_path / "d.grain")["ok"]
    report = grainstore.verify(tmp_path / "d.grain", check_images=True)
    assert (report["ok"], report["checked_images"]) == (False, len(pictures) - len(bad))
    assert [row["ordinal"] for row in report["damages"]] == list(bad)
    assert all(row["what"].startswith('field "image": ') for row in report["damages"])
    assert grainstore.verify(tmp_path / "d.grain")["checked_images"] is None
    with pytest.raises(grainstore.NoSuchName, match='verify: there is no field "picture"'):
        grainstore.verify(tmp_path / "d.grain", check_images=True, field="picture")
    with pytest.raises(grainstore.InvalidOption, match="check_images=True"):
        grainstore.verify(tmp_path / "d.grain", field="image")


def test_pictures_are_decoded_of_the_columns_that_are_there(tmp_path):
    with grainstore.Writer(tmp_path / "d.grain", {"mask": "bytes", "photo": "bytes", "label": "int64"}, keyed=False) as writer:
        for number in range(4):
            photo = encoded(PIL.Image.new("RGB", (8, 8), (number, number, number)), "PNG")
            writer.write(mask=b"no picture", photo=photo, label=number)
    ds = grainstore.open(tmp_path / "d.grain")
    for batch in grainstore.Loader(ds.select_columns(["photo", "label"]), 2, decode=Image(4)):
        assert list(batch) == ["photo", "label"]
        assert batch["photo"].shape == (2, 4, 4, 3)
        assert (batch["photo"][:, 0, 0, 0] == batch["label"]).all()
    with pytest.raises(grainstore.NoSuchName, match="photo"):
        grainstore.Loader(ds.select_columns(["mask"]), decode=Image(4, field="photo"))
