"""What the tests of grainstore.torch share."""

import traceback

import numpy as np

import grainstore

COUNT = 101


def write(path, count=COUNT):
    schema = {"image": "bytes", "caption": "str", "vector": "float32[3]", "label": "int64", "width": "uint8", "flip": "bool"}
    with grainstore.Writer(path, schema=schema, keyed=True) as writer:
        for number in range(count):
            writer.write(
                key=f"s{number:03}",
                image=b"%d" % number * 50,
                caption=f"sample {number}",
                vector=np.full(3, number, np.float32),
                label=number,
                width=number,
                flip=number % 2 == 0,
            )
    return path


def read(loader):
    """All batches of a loader that may fail."""
    try:
        return list(iter(loader))
    except BaseException as error:
        # What failed holds the iterator, whose workers torch ends at once when it is let go of, and slowly, or in the
        # midst of something else, where a collection of garbage finds it.
        traceback.clear_frames(error.__traceback__)
        raise


def labels_of(batches):
    return [label for batch in batches for label in batch["label"].tolist()]
