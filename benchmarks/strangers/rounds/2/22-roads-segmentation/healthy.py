"""Road and building segmentation of aerial tiles with a light FPN-like decoder."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

SIZE, CLASSES, BATCH = 96, 4, 3
rng = np.random.default_rng(0)
keras.utils.set_random_seed(0)


def make_tiles(n):
    mask = np.zeros((n, SIZE, SIZE), "int32")
    for m in mask:
        r, c = rng.integers(8, SIZE - 24, 2)
        m[r : r + 6] = 1
        m[:, c : c + 5] = 2
        m[r + 8 : r + 20, c + 8 : c + 20] = 3
    color = rng.random((CLASSES, 3))
    return (color[mask] + rng.normal(0, 0.2, mask.shape + (3,))).astype("float32"), mask


images, masks = make_tiles(210)

inp = keras.Input((SIZE, SIZE, 3))
c1 = layers.Conv2D(16, 3, strides=2, padding="same", activation="relu")(inp)
c2 = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(c1)
c3 = layers.Conv2D(64, 3, strides=2, padding="same", activation="relu")(c2)
p3 = layers.Conv2D(64, 3, padding="same", activation="relu")(c3)
p2 = layers.Add()([layers.UpSampling2D()(p3), layers.Conv2D(64, 1)(c2)])
p2 = layers.Conv2D(64, 3, padding="same", activation="relu")(p2)
small = layers.Conv2D(CLASSES, 1, name="classes")(p2)
logits = layers.UpSampling2D(4, interpolation="bilinear")(small)
model = keras.Model(inp, logits)


def pixel_loss(y, p):
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.cast(y, tf.int32), logits=p))


model.compile(keras.optimizers.Adam(1e-3), loss=pixel_loss)
ds = tf.data.Dataset.from_tensor_slices((images, masks)).shuffle(210).batch(BATCH).prefetch(2)
model.fit(ds, epochs=1, verbose=2)
