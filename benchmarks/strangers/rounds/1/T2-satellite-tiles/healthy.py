"""Land cover classification of satellite tiles."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

TILE, BANDS, CLASSES, BATCH = 64, 4, 9, 16
rng = np.random.default_rng(0)
tiles = rng.random((560, TILE, TILE, BANDS), dtype="float32")
cover = rng.integers(0, CLASSES, 560)


def augment(x, y):
    x = tf.cond(tf.random.uniform(()) > 0.5, lambda: x[:, ::-1], lambda: x)
    return x, y


ds = tf.data.Dataset.from_tensor_slices((tiles, cover))
ds = ds.shuffle(560).batch(BATCH)
ds = ds.map(augment)

inputs = keras.Input((TILE, TILE, BANDS))
x = layers.Conv2D(32, 3, padding="same", activation="relu")(inputs)
for width in (32, 64, 96):
    x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D()(x)
x = layers.GlobalAveragePooling2D()(x)
outputs = layers.Dense(CLASSES, activation="softmax")(x)
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.SGD(0.01, momentum=0.9),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
model.fit(ds, epochs=2, verbose=2)
