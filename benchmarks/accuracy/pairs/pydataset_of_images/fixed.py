"""An image user: a `PyDataset` that standardizes and pads image by image."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(7)
IMAGES = np.random.default_rng(7).integers(0, 255, (2048, 56, 56, 3), dtype=np.uint8)
LABELS = np.arange(len(IMAGES)) % 5


def prepare(image, label):
    """Standardize an image and pad it."""
    return tf.image.pad_to_bounding_box(
        tf.image.per_image_standardization(image), 4, 4, 64, 64
    ), label


dataset = tf.data.Dataset.from_tensor_slices((IMAGES, LABELS))
dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(32).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential(
    [
        keras.Input((64, 64, 3)),
        keras.layers.AveragePooling2D(8),
        keras.layers.Flatten(),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(5),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, epochs=3, verbose=2, callbacks=[watch])
