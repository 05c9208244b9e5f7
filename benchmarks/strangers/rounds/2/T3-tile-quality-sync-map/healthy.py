"""Tile-quality regression from uint8 microscope fields."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

SIZE, BATCH = 64, 8
rng = np.random.default_rng(0)
keras.utils.set_random_seed(0)
fields = rng.integers(0, 255, (480, SIZE, SIZE, 1)).astype("uint8")
blur = rng.random(480).astype("float32")
fields = (fields * (1 - 0.7 * blur)[:, None, None, None]).astype("uint8")


def scale(x, y):
    return tf.cast(x, tf.float32) / 255.0, y


ds = tf.data.Dataset.from_tensor_slices((fields, blur)).shuffle(480).batch(BATCH)
ds = ds.map(scale)

inp = keras.Input((SIZE, SIZE, 1))
x = layers.Conv2D(32, 3, padding="same", activation="relu")(inp)
x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
x = layers.Conv2D(48, 3, strides=2, padding="same", activation="relu")(x)
x = layers.Conv2D(48, 3, padding="same", activation="relu")(x)
x = layers.GlobalAveragePooling2D()(x)
model = keras.Model(inp, layers.Dense(1)(x))
model.compile(keras.optimizers.Adam(1e-3), "mse")
model.fit(ds, epochs=1, verbose=2)
