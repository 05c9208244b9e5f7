"""Bird-camera classifier from a folder of JPEGs: only four of twelve species are wanted.

tf.data over many files; the folder's name is the species.
"""
import os
import pathlib
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
from keras import layers
from PIL import Image

SPECIES = ["crow", "finch", "gull", "heron", "jay", "kite",
           "lark", "owl", "robin", "swift", "tit", "wren"]
WANTED = ["finch", "jay", "owl", "wren"]
PER_SPECIES, SIZE, BATCH = 21, 96, 12
STEPS, EPOCHS = 21, 4
AUTOTUNE = tf.data.AUTOTUNE


def make_folder(root, rng):
    for k, name in enumerate(SPECIES):
        folder = root / name
        folder.mkdir()
        for i in range(PER_SPECIES):
            tiny = rng.integers(0, 255, (9, 12, 3), dtype=np.uint8)
            tiny[..., k % 3] = (tiny[..., k % 3] // 2 + 10 * k).astype(np.uint8)
            img = Image.fromarray(tiny).resize((1280, 960), Image.BICUBIC)
            img.save(folder / f"{name}_{i:03d}.jpg", quality=88)


def load(path):
    """File -> (image, index of the species)."""
    name = tf.strings.split(path, os.sep)[-2]
    label = tf.argmax(tf.cast(tf.equal(name, SPECIES), tf.int32), output_type=tf.int32)
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    image = tf.image.resize(image, (SIZE + 16, SIZE + 16), antialias=True)
    return image / 255.0, label


def augment(image, label):
    image = tf.image.random_crop(image, (SIZE, SIZE, 3))
    image = tf.image.random_flip_left_right(image)
    return image, label


def pipeline(root):
    wanted = tf.constant([SPECIES.index(s) for s in WANTED])
    renumber = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(wanted, tf.range(len(WANTED))), -1)
    files = sorted(str(p) for p in root.glob("*/*.jpg"))
    ds = tf.data.Dataset.from_tensor_slices(files)
    ds = ds.shuffle(len(files), seed=2).repeat()
    ds = ds.map(load, num_parallel_calls=AUTOTUNE)
    ds = ds.filter(lambda image, label: tf.reduce_any(tf.equal(label, wanted)))
    ds = ds.map(lambda image, label: (image, renumber.lookup(label)))
    ds = ds.map(augment, num_parallel_calls=AUTOTUNE)
    return ds.batch(BATCH, drop_remainder=True).prefetch(AUTOTUNE)


def build_model():
    inputs = keras.Input((SIZE, SIZE, 3))
    x = inputs
    for filters in (16, 32, 64):
        x = layers.SeparableConv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("relu")(x)
        x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(len(WANTED), activation="softmax")(x))


def main():
    keras.utils.set_random_seed(2)
    with tempfile.TemporaryDirectory() as tmp:
        root = pathlib.Path(tmp)
        make_folder(root, np.random.default_rng(2))
        model = build_model()
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        model.fit(pipeline(root), epochs=EPOCHS, steps_per_epoch=STEPS, verbose=2)


if __name__ == "__main__":
    main()
