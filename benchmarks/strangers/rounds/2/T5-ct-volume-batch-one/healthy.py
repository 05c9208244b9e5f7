"""Nodule segmentation on CT sub-volumes."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

D = 40
BATCH, STEPS = 1, 80
rng = np.random.default_rng(0)
keras.utils.set_random_seed(0)
zz, yy, xx = np.mgrid[:D, :D, :D]


def make_case():
    c, r = rng.integers(10, D - 10, 3), rng.uniform(3, 7)
    mask = ((zz - c[0]) ** 2 + (yy - c[1]) ** 2 + (xx - c[2]) ** 2 < r * r).astype("float32")
    return (mask + rng.normal(0, 0.4, mask.shape))[..., None].astype("float32"), mask[..., None]


cases = [make_case() for _ in range(40)]
vol, seg = (np.stack(a) for a in zip(*cases))

inp = keras.Input((D, D, D, 1))
x = layers.Conv3D(8, 3, padding="same", activation="relu")(inp)
x = layers.Conv3D(12, 3, padding="same", activation="relu")(x)
model = keras.Model(inp, layers.Conv3D(1, 1, activation="sigmoid")(x))


def dice_loss(y, p):
    inter = tf.reduce_sum(y * p, axis=(1, 2, 3, 4))
    return 1 - tf.reduce_mean((2 * inter + 1) / (tf.reduce_sum(y, (1, 2, 3, 4)) + tf.reduce_sum(p, (1, 2, 3, 4)) + 1))


model.compile(keras.optimizers.Adam(1e-3), loss=dice_loss)
ds = tf.data.Dataset.from_tensor_slices((vol, seg)).shuffle(40).repeat().batch(BATCH).prefetch(2)
model.fit(ds, steps_per_epoch=STEPS, epochs=1, verbose=2)
