"""Which animal is in the picture of the camera trap?  Small residual network on JPEG files."""
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(9)

SPECIES = ["empty", "boar", "deer", "fox", "lynx"]
IMG_SIZE = 64
BATCH_SIZE = 16
EPOCHS = 4
PER_SPECIES = 80


def make_pictures(root):
    """Writes root/<species>/<number>.jpg"""
    rng = np.random.default_rng(12)
    yy, xx = np.mgrid[0:IMG_SIZE, 0:IMG_SIZE]
    for k, species in enumerate(SPECIES):
        os.makedirs(os.path.join(root, species))
        for i in range(PER_SPECIES):
            night = rng.random() < 0.5
            image = rng.normal(60 if night else 120, 12, (IMG_SIZE, IMG_SIZE, 1))
            image = image + np.array([0, 15, 0]) * (not night)
            if k:
                cy, cx = rng.uniform(15, IMG_SIZE - 15, 2)
                ry, rx = 4 + 2 * k, 14 - 2 * k
                body = ((yy - cy) / ry) ** 2 + ((xx - cx) / rx) ** 2 < 1
                image[body] += 50 + 10 * k
            data = tf.io.encode_jpeg(np.clip(image, 0, 255).astype("uint8"), quality=85)
            tf.io.write_file(os.path.join(root, species, f"{i:04d}.jpg"), data)


def list_pictures(root):
    paths, labels = [], []
    for k, species in enumerate(SPECIES):
        for name in sorted(os.listdir(os.path.join(root, species))):
            paths.append(os.path.join(root, species, name))
            labels.append(k)
    return paths, labels


def parse_image(path, label):
    image = tf.io.read_file(path)
    image = tf.image.decode_jpeg(image, channels=3)
    image = tf.image.resize(image, (IMG_SIZE, IMG_SIZE))
    image = image / 255.0
    return image, label


def flip(image, label):
    return tf.image.random_flip_left_right(image), label


def residual(x, filters, stride=1):
    y = layers.Conv2D(filters, 3, strides=stride, padding="same", use_bias=False)(x)
    y = layers.BatchNormalization()(y)
    y = layers.ReLU()(y)
    y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(y)
    y = layers.BatchNormalization()(y)
    if stride != 1 or x.shape[-1] != filters:
        x = layers.Conv2D(filters, 1, strides=stride, use_bias=False)(x)
    return layers.ReLU()(layers.Add()([x, y]))


def build_model():
    inputs = keras.Input((IMG_SIZE, IMG_SIZE, 3))
    x = layers.Conv2D(64, 5, strides=2, padding="same", use_bias=False)(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU()(x)
    for filters, stride in ((64, 1), (128, 2), (128, 1), (256, 2)):
        x = residual(x, filters, stride)
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(len(SPECIES), activation="softmax")(x)
    return keras.Model(inputs, outputs)


if __name__ == "__main__":
    root = tempfile.mkdtemp(prefix="camera_trap_")
    make_pictures(root)
    paths, labels = list_pictures(root)
    train_ds = tf.data.Dataset.from_tensor_slices((paths, labels))
    train_ds = train_ds.shuffle(len(paths))
    train_ds = train_ds.map(parse_image)
    train_ds = train_ds.map(flip)
    train_ds = train_ds.batch(BATCH_SIZE, drop_remainder=True)

    model = build_model()
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(train_ds, epochs=EPOCHS, verbose=2)
