"""JPEG files packed with grainstore, decoded by tf.data, trained on by Keras.

    pip install tensorflow
    python examples/tensorflow_dataset.py
"""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

import grainstore
import grainstore.tensorflow

SIDE = 16


def make_pictures(folder):
    """Noisy pictures, dark and light, as folder/class/number.jpg."""
    draw = np.random.default_rng(0)
    for number in range(400):
        name, brightness = (("dark", 70), ("light", 180))[number % 2]
        picture = draw.normal(brightness, 40, (SIDE, SIDE, 3)).clip(0, 255).astype(np.uint8)
        path = Path(folder, name, f"{number:04}.jpg")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(tf.io.encode_jpeg(picture).numpy())


def decoded(sample):
    picture = tf.io.decode_jpeg(sample["image"], channels=3)
    return tf.ensure_shape(tf.cast(picture, tf.float32) / 255 - 0.5, (SIDE, SIDE, 3)), sample["label"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        make_pictures(Path(folder, "pictures"))
        path = Path(folder, "pictures.grain")
        grainstore.convert(Path(folder, "pictures"), path)
        dataset = grainstore.open(path)

        # One by one from grainstore, so that tf.data decodes them in its own threads and batches them afterwards.
        loader = grainstore.Loader(dataset, batch_size=None, seed=7)
        samples = grainstore.tensorflow.dataset(loader)
        print(f"{samples.cardinality().numpy()} samples: {samples.element_spec}")
        batches = samples.map(decoded, num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(tf.data.AUTOTUNE)

        layers = [tf.keras.layers.Flatten(), tf.keras.layers.Dense(1, activation="sigmoid")]
        model = tf.keras.Sequential(layers)
        model.compile(tf.keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
        history = model.fit(batches, epochs=3, shuffle=False, verbose=0).history
        print("accuracy of each epoch:", [f"{value:.2f}" for value in history["accuracy"]])
        print(f"the next epoch is number {loader.epoch}")


if __name__ == "__main__":
    main()
