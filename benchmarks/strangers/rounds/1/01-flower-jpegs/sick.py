"""Train a small flower classifier from a folder of JPEG photos."""
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

IMG_SIZE = 96
BATCH = 16
CLASSES = ["daisy", "rose", "tulip", "sunflower"]


def write_photos(root, per_class=24):
    rng = np.random.default_rng(0)
    for label, name in enumerate(CLASSES):
        os.makedirs(os.path.join(root, name))
        for i in range(per_class):
            small = rng.integers(0, 255, (30, 40, 3)).astype("uint8")
            photo = np.kron(small, np.ones((24, 24, 1), "uint8"))
            photo[..., label % 3] //= 2
            data = tf.io.encode_jpeg(photo, quality=90)
            tf.io.write_file(os.path.join(root, name, f"{i:03d}.jpg"), data)


root = tempfile.mkdtemp()
write_photos(root)


def load(path):
    label = tf.strings.split(path, os.sep)[-2]
    label = tf.argmax(tf.constant(CLASSES) == label)
    data = tf.io.read_file(path)
    img = tf.io.decode_jpeg(data, channels=3)
    img = tf.image.resize(img, (IMG_SIZE, IMG_SIZE))
    img = tf.image.random_flip_left_right(img)
    return img / 255.0, label


ds = tf.data.Dataset.list_files(os.path.join(root, "*", "*.jpg")).repeat()
ds = ds.map(load, num_parallel_calls=tf.data.AUTOTUNE)
ds = ds.batch(BATCH, drop_remainder=True).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([
    keras.layers.Input((IMG_SIZE, IMG_SIZE, 3)),
    keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
    keras.layers.Conv2D(32, 3, strides=2, activation="relu"),
    keras.layers.Conv2D(64, 3, strides=2, activation="relu"),
    keras.layers.GlobalAveragePooling2D(),
    keras.layers.Dense(len(CLASSES)),
])
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(ds, steps_per_epoch=42, epochs=2, verbose=2)
