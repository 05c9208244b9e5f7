"""A photographer's classifier: JPEGs from a folder, decoded and shrunk for every step."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(17)
rng = np.random.default_rng(17)
SIDE = 64


def photo():
    """Return a JPEG of 384 by 512 with some texture."""
    coarse = rng.integers(0, 255, (24, 32, 3)).astype("float32")
    image = tf.image.resize(coarse, (384, 512), "bicubic") + rng.normal(0, 8, (384, 512, 3))
    return tf.io.encode_jpeg(tf.saturate_cast(image, tf.uint8), quality=90)


def shrink(jpeg):
    """Return the image at the model's size."""
    return tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (SIDE, SIDE), antialias=True)


photos = [photo() for _ in range(200)]
labels = rng.integers(0, 5, 200)


def load(jpeg, label):
    """Decode, shrink, and flip at random."""
    image = tf.image.random_flip_left_right(shrink(jpeg))
    return tf.image.random_brightness(image / 255.0, 0.1), label


dataset = tf.data.Dataset.from_tensor_slices((photos, labels)).shuffle(200).repeat()
dataset = dataset.map(load, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(8, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((SIDE, SIDE, 3)),
        keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dense(5),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, steps_per_epoch=160, verbose=2, callbacks=[watch])
