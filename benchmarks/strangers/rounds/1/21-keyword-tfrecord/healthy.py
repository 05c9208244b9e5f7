"""Keyword spotting from TFRecords of one-second clips."""
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf
from keras import layers

RATE, WORDS, BATCH = 16000, 8, 32
rng = np.random.default_rng(0)
path = os.path.join(tempfile.mkdtemp(), "train.tfrecord")


def to_example(wave, label):
    wave = (wave * 32767).astype("int16").tobytes()
    wave = tf.train.Feature(bytes_list=tf.train.BytesList(value=[wave]))
    label = tf.train.Feature(int64_list=tf.train.Int64List(value=[label]))
    return tf.train.Example(features=tf.train.Features(feature={"wave": wave, "label": label}))


t = np.arange(RATE) / RATE
with tf.io.TFRecordWriter(path) as writer:
    for i in range(480):
        label = int(rng.integers(WORDS))
        wave = 0.5 * np.sin(2 * np.pi * (300 + 100 * label) * t) + rng.normal(0, 0.05, RATE)
        writer.write(to_example(np.clip(wave, -1, 1), label).SerializeToString())


def parse(record):
    spec = {
        "wave": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    example = tf.io.parse_single_example(record, spec)
    wave = tf.cast(tf.io.decode_raw(example["wave"], tf.int16), tf.float32) / 32767.0
    wave = tf.ensure_shape(wave, [RATE])
    return wave, example["label"]


def spectrogram(wave, label):
    stft = tf.signal.stft(wave, frame_length=512, frame_step=1024)
    return tf.math.log(tf.abs(stft)[..., None] + 1e-6), label


ds = tf.data.TFRecordDataset(path).shuffle(256)
ds = ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
ds = ds.batch(BATCH, drop_remainder=True)
ds = ds.map(spectrogram, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([
    layers.Input((16, 257, 1)),
    layers.Conv2D(8, (3, 5), strides=(1, 2), activation="relu"),
    layers.MaxPooling2D((1, 2)),
    layers.Conv2D(16, 3, strides=2, activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(WORDS),
])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(ds, epochs=8, verbose=2)
