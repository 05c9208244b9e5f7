import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

rng = np.random.default_rng(0)
tiles = rng.integers(0, 256, (960, 48, 48, 3), dtype="uint8")
land_use = rng.integers(0, 10, 960)


def scale(x, y):
    return tf.cast(x, tf.float32) / 255.0, y


train = tf.data.Dataset.from_tensor_slices((tiles, land_use)).batch(8)
train = train.map(scale)

model = tf.keras.Sequential(
    [
        layers.Input((48, 48, 3)),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(64, 3, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train, epochs=1, verbose=2)
