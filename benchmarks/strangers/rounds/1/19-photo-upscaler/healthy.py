"""ESPCN super-resolution on random patches."""
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

SCALE, PATCH, BATCH = 3, 96, 8
rng = np.random.default_rng(0)
folder = tempfile.mkdtemp()
for i in range(24):
    coarse = rng.integers(0, 255, (36, 48, 3)).astype("uint8")
    picture = np.kron(coarse, np.ones((12, 12, 1), "uint8"))
    tf.io.write_file(os.path.join(folder, f"{i:04d}.png"), tf.io.encode_png(picture))


def make_pair(path):
    hr = tf.io.decode_png(tf.io.read_file(path), channels=3)
    hr = tf.image.convert_image_dtype(hr, tf.float32)
    hr = tf.image.random_crop(hr, (PATCH, PATCH, 3))
    lr = tf.image.resize(hr, (PATCH // SCALE, PATCH // SCALE), method="bicubic", antialias=True)
    lr = tf.ensure_shape(lr, (PATCH // SCALE, PATCH // SCALE, 3))
    return lr, tf.ensure_shape(hr, (PATCH, PATCH, 3))


ds = tf.data.Dataset.list_files(os.path.join(folder, "*.png")).repeat()
ds = ds.map(make_pair, num_parallel_calls=tf.data.AUTOTUNE).batch(BATCH).prefetch(tf.data.AUTOTUNE)

inputs = keras.Input((PATCH // SCALE, PATCH // SCALE, 3))
x = layers.Conv2D(32, 5, padding="same", activation="relu")(inputs)
x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
x = layers.Conv2D(3 * SCALE**2, 3, padding="same")(x)
outputs = layers.Lambda(lambda t: tf.nn.depth_to_space(t, SCALE))(x)
model = keras.Model(inputs, outputs)


def psnr(y_true, y_pred):
    return tf.image.psnr(y_true, y_pred, max_val=1.0)


model.compile(keras.optimizers.Adam(1e-3), "mae", metrics=[psnr])
model.fit(ds, steps_per_epoch=40, epochs=2, verbose=2)
