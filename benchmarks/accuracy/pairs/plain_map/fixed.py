"""A trap: a plain `map`, which tf.data runs in parallel by itself, and no prefetch, which it adds."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(30)
images = np.random.default_rng(30).integers(0, 255, (1600, 64, 64, 3), dtype=np.uint8)
labels = np.arange(len(images)) % 10


def prepare(image, label):
    """Shrink."""
    return tf.image.resize(image, (32, 32)) / 255.0, label


dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1600)
dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(32)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((32, 32, 3)),
        keras.layers.Reshape((32, 96)),
        keras.layers.GRU(32),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, epochs=3, verbose=2, callbacks=[watch])
