"""Classifies images from a folder of JPEGs, with augmentation.

The pipeline is that of the guide https://keras.io/examples/vision/image_classification_from_scratch/, the
network that of https://www.tensorflow.org/tutorials/images/classification, with its batch of 32. The images are
made up.
"""

import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf
from keras import layers

CLASSES, IMAGES, HEIGHT, WIDTH = ("cat", "dog"), 480, 240, 320

image_size = (180, 180)
batch_size = 32


def make_images(folder):
    """Write JPEGs of colored noise, a folder for each class."""
    rng = np.random.default_rng(0)
    for name in CLASSES:
        Path(folder, name).mkdir()
        for number in range(IMAGES):
            coarse = rng.integers(0, 255, (HEIGHT // 8, WIDTH // 8, 3))
            image = tf.cast(coarse.repeat(8, axis=0).repeat(8, axis=1), tf.uint8)
            Path(folder, name, f"{number}.jpg").write_bytes(tf.io.encode_jpeg(image).numpy())


def make_model():
    """Return a small convolutional network."""
    return keras.Sequential(
        [
            keras.Input((*image_size, 3)),
            layers.Rescaling(1.0 / 255),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Dropout(0.2),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(len(CLASSES), name="outputs"),
        ]
    )


folder = tempfile.TemporaryDirectory()
make_images(folder.name)

train_ds, val_ds = keras.utils.image_dataset_from_directory(
    folder.name,
    validation_split=0.2,
    subset="both",
    seed=1337,
    image_size=image_size,
    batch_size=batch_size,
)

data_augmentation_layers = [
    layers.RandomFlip("horizontal"),
    layers.RandomRotation(0.1),
]


def data_augmentation(images):
    """Flip and turn images at random."""
    for layer in data_augmentation_layers:
        images = layer(images)
    return images


train_ds = train_ds.map(
    lambda img, label: (data_augmentation(img), label),
    num_parallel_calls=tf.data.AUTOTUNE,
)
train_ds = train_ds.prefetch(tf.data.AUTOTUNE)
val_ds = val_ds.prefetch(tf.data.AUTOTUNE)

model = make_model()
model.compile(
    optimizer="adam",
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(train_ds, epochs=10, validation_data=val_ds, verbose=2)
