"""Cats vs dogs, trained from a folder of JPEG files."""
import pathlib
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

IMG = 80
folder = pathlib.Path(tempfile.mkdtemp())
rng = np.random.default_rng(0)
photos = []
for k in range(8):
    coarse = rng.integers(0, 256, (20, 20, 3)).astype("float32")
    big = tf.cast(tf.clip_by_value(tf.image.resize(coarse, (640, 640)), 0, 255), tf.uint8)
    photos.append(tf.io.encode_jpeg(big, quality=90).numpy())
for i in range(256):
    (folder / f"{'cat' if i % 2 else 'dog'}.{i}.jpg").write_bytes(photos[i % 8])


def process(path):
    raw = tf.io.read_file(path)
    image = tf.io.decode_jpeg(raw, channels=3)
    image = tf.image.resize(image, (IMG, IMG)) / 255.0
    label = tf.strings.regex_full_match(path, r".*cat\.\d+\.jpg")
    return image, tf.cast(label, tf.float32)


files = tf.data.Dataset.list_files(str(folder / "*.jpg"), shuffle=True)
train = files.map(process, num_parallel_calls=tf.data.AUTOTUNE).batch(16).prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential([layers.Input((IMG, IMG, 3))])
for filters in (8, 16, 32):
    model.add(layers.Conv2D(filters, 3, activation="relu", padding="same"))
    model.add(layers.MaxPooling2D())
model.add(layers.GlobalAveragePooling2D())
model.add(layers.Dense(1, activation="sigmoid"))
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(train, epochs=5, verbose=2)
