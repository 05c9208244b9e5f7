"""`Model.fit` of a small convolutional network on a dataset that scales its images."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
images = rng.integers(0, 255, size=(2400, 16, 16, 1), dtype="uint8")
labels = rng.integers(0, 10, size=2400)


def scaled(image, label):
    return tf.cast(image, tf.float32) / 255.0, label


data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1000, seed=0)
data = data.map(scaled, num_parallel_calls=tf.data.AUTOTUNE).batch(8).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((16, 16, 1)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(data, epochs=2, verbose=0)
