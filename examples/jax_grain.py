"""Two ways to feed JAX: a grainstore dataset as Grain's source, and grainstore's own epochs in a Grain pipeline.

    pip install grain jax
    python examples/jax_grain.py
"""

import tempfile
from pathlib import Path

import grain
import jax
import jax.numpy as jnp
import numpy as np

import grainstore
import grainstore.jax


def write(path):
    """Points in 8 dimensions with y = x @ slope, and a little noise."""
    draw = np.random.default_rng(0)
    slope = draw.standard_normal(8, np.float32)
    with grainstore.Writer(path, {"x": "float32[8]", "y": "float32"}, keyed=False) as writer:
        for _ in range(4096):
            x = draw.standard_normal(8, np.float32)
            writer.write(x=x, y=float(x @ slope + draw.normal(0, 0.01)))


@jax.jit
def step(slope, batch):
    def loss(slope):
        return jnp.mean((batch["x"] @ slope - batch["y"]) ** 2)

    value, gradient = jax.value_and_grad(loss)(slope)
    return slope - 0.1 * gradient, value


def fit(batches):
    slope, value = jnp.zeros(8), None
    for batch in batches:
        slope, value = step(slope, batch)
    return float(value)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "points.grain")
        write(path)
        dataset = grainstore.open(path)

        # Grain shuffles, and requests one sample after the other.
        source = grain.MapDataset.source(dataset).shuffle(seed=7).repeat(2)
        print(f"MapDataset.source: loss {fit(source.batch(64, drop_remainder=True).to_iter_dataset()):.5f}")

        # grainstore shuffles, and gives whole batches; Grain does the rest.
        loader = grainstore.Loader(dataset, batch_size=64, seed=7, drop_last=True)
        epochs = grainstore.jax.IterDataset(loader, num_epochs=2)
        print(f"grainstore.jax.IterDataset: loss {fit(epochs):.5f}")

        # Its state is that of Grain's iterator, so Grain's checkpoints hold it.
        iterator = iter(epochs)
        for _ in range(100):
            next(iterator)
        state = iterator.get_state()
        rest = [batch["y"] for batch in iterator]
        other = iter(grainstore.jax.IterDataset(loader, num_epochs=2))
        other.set_state(state)
        equal = all(np.array_equal(mine, batch["y"]) for mine, batch in zip(rest, other, strict=True))
        print(f"resumed after 100 of 128 batches: {len(rest)} batches, equal: {equal}")


if __name__ == "__main__":
    main()
