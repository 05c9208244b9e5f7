"""A shop: decodes the same pictures in every epoch."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(9)
rng = np.random.default_rng(9)
pngs = [
    tf.io.encode_png(tf.cast(rng.integers(0, 255, (40, 40, 3)).repeat(4, 0).repeat(4, 1), tf.uint8))
    for _ in range(320)
]
labels = np.arange(len(pngs)) % 4


def decode(png, label):
    """Return a small image."""
    image = tf.io.decode_png(png, channels=3)
    return tf.image.resize(image, (48, 48), antialias=True) / 255.0, label


dataset = tf.data.Dataset.from_tensor_slices((pngs, labels))
dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((48, 48, 3)),
        keras.layers.Conv2D(16, 3, strides=4, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(4),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, epochs=60, verbose=2, callbacks=[watch])
