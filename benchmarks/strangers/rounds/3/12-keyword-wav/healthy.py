import os
import tempfile

import numpy as np
import tensorflow as tf
from keras import layers, models

RATE = 16000
data_dir = tempfile.mkdtemp()
rng = np.random.default_rng(0)
files, labels = [], []
for i in range(320):
    label = i % 8
    wave = np.sin(2 * np.pi * (200 + 150 * label) * np.arange(RATE) / RATE) * 0.4 + rng.normal(size=RATE) * 0.05
    path = os.path.join(data_dir, f"{label}_{i}.wav")
    tf.io.write_file(path, tf.audio.encode_wav(tf.constant(wave[:, None], tf.float32), RATE))
    files.append(path)
    labels.append(label)

mel = tf.signal.linear_to_mel_weight_matrix(40, 513, RATE, 60.0, 7600.0)


def load(path, label):
    audio, _ = tf.audio.decode_wav(tf.io.read_file(path), desired_channels=1, desired_samples=RATE)
    return audio[:, 0], label


def log_mel(audio, label):
    stft = tf.signal.stft(audio, frame_length=1024, frame_step=128)
    return tf.math.log(tf.matmul(tf.abs(stft), mel) + 1e-6)[..., None], label


train_ds = tf.data.Dataset.from_tensor_slices((files, labels))
train_ds = train_ds.map(load, tf.data.AUTOTUNE)
train_ds = train_ds.map(log_mel, tf.data.AUTOTUNE).cache()
train_ds = train_ds.shuffle(320).batch(16).prefetch(tf.data.AUTOTUNE)

model = models.Sequential(
    [
        layers.Input((118, 40, 1)),
        layers.Conv2D(8, 3, strides=2, activation="relu"),
        layers.MaxPooling2D(),
        layers.Conv2D(16, 3, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(8),
    ]
)
model.compile("adam", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(train_ds, epochs=6, verbose=2)
