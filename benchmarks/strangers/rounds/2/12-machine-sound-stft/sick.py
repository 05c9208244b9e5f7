"""Fault detection from machine sound: WAV files, log spectrogram windows, small CNN."""
import os
import tempfile
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

RATE, SECONDS, FRAMES, HOP, WIN = 16000, 10, 64, 160, 400
folder = tempfile.mkdtemp()
rng = np.random.default_rng(0)
tf.keras.utils.set_random_seed(0)

paths, labels = [], []
t = np.arange(RATE * SECONDS) / RATE
for i in range(24):
    fault = i % 2
    wave = 0.3 * np.sin(2 * np.pi * (50 + i) * t) + 0.05 * rng.standard_normal(len(t))
    if fault:
        wave += 0.2 * (np.sin(2 * np.pi * 7 * t) > 0.95) * np.sin(2 * np.pi * 3000 * t)
    pcm = tf.audio.encode_wav(tf.constant(wave[:, None], tf.float32), RATE)
    paths.append(os.path.join(folder, f"{i:03d}.wav"))
    tf.io.write_file(paths[-1], pcm)
    labels.append(fault)


def load(path, label):
    wave = tf.audio.decode_wav(tf.io.read_file(path), desired_channels=1)[0][:, 0]
    return wave, label


def to_window(wave, label):
    spec = tf.abs(tf.signal.stft(wave, WIN, HOP))
    spec = tf.math.log(spec + 1e-3)
    window = tf.image.random_crop(spec, [FRAMES, 257])
    return window[..., None], label


ds = (tf.data.Dataset.from_tensor_slices((paths, labels))
      .map(load, num_parallel_calls=tf.data.AUTOTUNE)
      .cache()
      .shuffle(24)
      .repeat()
      .map(to_window, num_parallel_calls=tf.data.AUTOTUNE)
      .batch(16)
      .prefetch(tf.data.AUTOTUNE))

model = tf.keras.Sequential([
    tf.keras.Input((FRAMES, 257, 1)),
    layers.Conv2D(8, 5, strides=(2, 4), padding="same", activation="relu"),
    layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
    layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(1, activation="sigmoid"),
])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(ds, steps_per_epoch=30, epochs=3, verbose=2)
