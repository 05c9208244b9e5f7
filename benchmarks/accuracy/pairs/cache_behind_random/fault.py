"""A trap: a cache right behind a random flip is a mistake, but no slow one."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(36)
glyphs = np.random.default_rng(36).random((1280, 28, 28), dtype=np.float32)
labels = np.arange(len(glyphs)) % 10


def flip(glyph, label):
    """Flip at random."""
    return tf.image.random_flip_left_right(glyph[..., None])[..., 0], label


dataset = tf.data.Dataset.from_tensor_slices((glyphs, labels))
dataset = dataset.map(flip, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.cache()
dataset = dataset.shuffle(1280).batch(32).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([keras.Input((28, 28)), keras.layers.LSTM(32), keras.layers.Dense(10)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, epochs=4, verbose=2, callbacks=[watch])
