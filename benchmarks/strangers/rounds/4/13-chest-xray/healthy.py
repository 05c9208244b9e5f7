"""Chest X-ray: pneumonia vs. normal. Small CNN trained from JPEG files on disk."""
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

SEED = 2021
SOURCE_SIZE = 400
IMG_SIZE = 96
BATCH_SIZE = 16
EPOCHS = 9
N_TRAIN, N_VAL = 288, 32
CLASSES = ["NORMAL", "PNEUMONIA"]

keras.utils.set_random_seed(SEED)


def make_radiographs(root, n, rng):
    """Stand-in for the hospital export: one folder per class, 8-bit JPEG."""
    noise = rng.normal(0, 0.03, (2 * SOURCE_SIZE, SOURCE_SIZE))
    yy, xx = np.mgrid[0:SOURCE_SIZE, 0:SOURCE_SIZE] / SOURCE_SIZE
    chest = 0.65 - 0.4 * np.exp(-((xx - 0.3) ** 2 / 0.02 + (yy - 0.5) ** 2 / 0.08))
    chest -= 0.4 * np.exp(-((xx - 0.7) ** 2 / 0.02 + (yy - 0.5) ** 2 / 0.08))
    for i in range(n):
        label = i % 2
        img = chest.copy()
        if label:
            cx, cy = rng.uniform(0.25, 0.75), rng.uniform(0.35, 0.7)
            img += 0.3 * np.exp(-((xx - cx) ** 2 + (yy - cy) ** 2) / 0.004)
        shift = rng.integers(SOURCE_SIZE)
        img += noise[shift : shift + SOURCE_SIZE]
        data = (np.clip(img, 0, 1) * 255).astype("uint8")[..., None]
        path = os.path.join(root, CLASSES[label], f"{i:05d}.jpg")
        tf.io.write_file(path, tf.io.encode_jpeg(data, format="grayscale", quality=90))


def list_files(root):
    paths, labels = [], []
    for label, name in enumerate(CLASSES):
        folder = os.path.join(root, name)
        for f in sorted(os.listdir(folder)):
            paths.append(os.path.join(folder, f))
            labels.append(label)
    order = np.random.RandomState(SEED).permutation(len(paths))
    return np.array(paths)[order], np.array(labels, "float32")[order]


def decode(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=1)
    image = tf.image.convert_image_dtype(image, tf.float32)
    return image, label


def resize(image, label):
    image = tf.image.resize(image, (IMG_SIZE, IMG_SIZE))
    return tf.ensure_shape(image, (IMG_SIZE, IMG_SIZE, 1)), label


def augment(image, label):
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_contrast(image, 0.8, 1.2)
    image = tf.image.random_brightness(image, 0.1)
    gamma = tf.random.uniform([], 0.85, 1.15)
    image = tf.pow(tf.clip_by_value(image, 1e-3, 1.0), gamma)
    # histogram-like window: stretch between the 2nd brightest tails
    low = tf.reduce_mean(image) - 2.0 * tf.math.reduce_std(image)
    high = tf.reduce_mean(image) + 2.0 * tf.math.reduce_std(image)
    image = tf.clip_by_value((image - low) / (high - low + 1e-6), 0.0, 1.0)
    return image, label


def make_dataset(paths, labels, training):
    ds = tf.data.Dataset.from_tensor_slices((paths, labels))
    if training:
        ds = ds.shuffle(len(paths), seed=SEED)
    ds = ds.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    ds = ds.map(resize, num_parallel_calls=tf.data.AUTOTUNE)
    if training:
        ds = ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    return ds.batch(BATCH_SIZE, drop_remainder=training).prefetch(tf.data.AUTOTUNE)


def conv_block(filters, x):
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x)
    return layers.MaxPool2D()(x)


def build_model():
    inputs = keras.Input((IMG_SIZE, IMG_SIZE, 1))
    x = layers.Conv2D(12, 3, strides=2, padding="same", activation="relu")(inputs)
    for filters in (16, 24, 32):
        x = conv_block(filters, x)
    x = layers.GlobalAveragePooling2D()(x)
    x = layers.Dense(64, activation="relu")(x)
    x = layers.Dropout(0.3)(x)
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x), name="xray_net")


def main():
    root = tempfile.mkdtemp(prefix="chest_xray_")
    rng = np.random.default_rng(SEED)
    make_radiographs(root, N_TRAIN + N_VAL, rng)
    paths, labels = list_files(root)
    train_ds = make_dataset(paths[:N_TRAIN], labels[:N_TRAIN], training=True)
    val_ds = make_dataset(paths[N_TRAIN:], labels[N_TRAIN:], training=False)

    model = build_model()
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss="binary_crossentropy",
        metrics=["accuracy", keras.metrics.AUC(name="auc")],
    )
    counts = np.bincount(labels[:N_TRAIN].astype(int))
    weights = {i: N_TRAIN / (2.0 * c) for i, c in enumerate(counts)}
    model.fit(train_ds, validation_data=val_ds, epochs=EPOCHS, class_weight=weights, verbose=2)


if __name__ == "__main__":
    main()
