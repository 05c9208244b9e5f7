"""Shelf-product classifier fed by the Python reader of the labelling team."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

SIZE, CLASSES, BATCH = 64, 8, 16
rng = np.random.default_rng(0)
keras.utils.set_random_seed(0)
stamps = rng.random((CLASSES, 16, 16, 3)).astype("float32")
pictures, labels = rng.random((320, SIZE, SIZE, 3)).astype("float32") * 0.3, rng.integers(0, CLASSES, 320)
for img, c in zip(pictures, labels):
    r, s = rng.integers(0, SIZE - 16, 2)
    img[r : r + 16, s : s + 16] += stamps[c]


def reader():
    while True:
        for i in np.random.permutation(len(pictures)):
            yield pictures[i], labels[i]


spec = (tf.TensorSpec((SIZE, SIZE, 3), tf.float32), tf.TensorSpec((), tf.int64))
ds = tf.data.Dataset.from_generator(reader, output_signature=spec).batch(BATCH).prefetch(2)

inp = keras.Input((SIZE, SIZE, 3))
x = layers.Conv2D(32, 5, strides=2, padding="same", activation="relu")(inp)
x = layers.Conv2D(64, 3, padding="same", activation="relu")(x)
x = layers.Conv2D(64, 3, padding="same", activation="relu")(x)
x = layers.MaxPooling2D()(x)
x = layers.Conv2D(96, 3, padding="same", activation="relu")(x)
x = layers.GlobalMaxPooling2D()(x)
model = keras.Model(inp, layers.Dense(CLASSES, activation="softmax")(x))
model.compile(keras.optimizers.SGD(0.02, momentum=0.9), "sparse_categorical_crossentropy")
model.fit(ds, steps_per_epoch=20, epochs=3, verbose=2)
