"""An image user: random crops, flips and colours for each image, then a small classifier."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(3)
images = np.random.default_rng(3).integers(0, 255, (1280, 72, 72, 3), dtype=np.uint8)
labels = np.arange(len(images)) % 10


def augment(image, label):
    """Crop, flip, recolour."""
    image = tf.image.random_crop(image, (64, 64, 3))
    image = tf.image.random_flip_left_right(image)
    image = tf.cast(image, tf.float32) / 255.0
    image = tf.image.random_hue(image, 0.1)
    image = tf.image.random_saturation(image, 0.8, 1.2)
    image = tf.image.resize(image, (32, 32), antialias=True)
    return image, label


dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1280)
dataset = dataset.map(augment)
dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((32, 32, 3)),
        keras.layers.AveragePooling2D(4),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(10),
    ]
)
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, epochs=4, verbose=2, callbacks=[watch])
