"""Simple audio recognition: recognizing keywords (made-up one-second tones instead of the speech commands)."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers, models

seed = 42
tf.random.set_seed(seed)
np.random.seed(seed)

commands = ["down", "go", "left", "no", "right", "stop", "up", "yes"]
SAMPLE_RATE = 4000
BATCH_SIZE = 32


def make_waveforms(n):
    t = np.arange(SAMPLE_RATE) / SAMPLE_RATE
    labels = np.random.randint(len(commands), size=n)
    audio = np.zeros((n, SAMPLE_RATE), "float32")
    for i, label in enumerate(labels):
        begin = np.random.uniform(0.1, 0.4)
        envelope = np.exp(-(((t - begin - 0.2) / 0.15) ** 2))
        f0 = 200 + 120 * label + np.random.normal(0, 15)
        sweep = np.sin(2 * np.pi * (f0 * t + (label % 3 - 1) * 200 * t**2))
        audio[i] = envelope * (sweep + 0.4 * np.sin(4 * np.pi * f0 * t)) + np.random.normal(0, 0.1, len(t))
    return audio, labels.astype("int64")


def get_spectrogram(waveform):
    spectrogram = tf.signal.stft(waveform, frame_length=128, frame_step=64)
    spectrogram = tf.abs(spectrogram)
    return tf.math.log1p(spectrogram[..., tf.newaxis])


class SpectrogramLayer(layers.Layer):
    """Waveform in, log spectrogram out, so that the exported model takes raw audio."""

    def call(self, waveform):
        return get_spectrogram(waveform)

    def compute_output_shape(self, input_shape):
        return (input_shape[0], 61, 65, 1)


def make_dataset(audio, labels, shuffle):
    ds = tf.data.Dataset.from_tensor_slices((audio, labels))
    if shuffle:
        ds = ds.shuffle(len(audio), seed=seed)
    return ds.batch(BATCH_SIZE, drop_remainder=True)


audio, labels = make_waveforms(1280 + 160)
train_ds = make_dataset(audio[:1280], labels[:1280], True)
val_ds = make_dataset(audio[1280:], labels[1280:], False)

norm_layer = layers.Normalization(axis=None)
norm_layer.adapt(get_spectrogram(audio[:200]))

model = models.Sequential(
    [
        layers.Input(shape=(SAMPLE_RATE,)),
        SpectrogramLayer(),
        norm_layer,
        layers.Conv2D(24, 3, activation="relu"),
        layers.Conv2D(48, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Dropout(0.25),
        layers.Flatten(),
        layers.Dense(64, activation="relu"),
        layers.Dropout(0.5),
        layers.Dense(len(commands)),
    ]
)
model.compile(
    optimizer=tf.keras.optimizers.Adam(),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    jit_compile=False,
)
model.fit(
    train_ds,
    validation_data=val_ds,
    epochs=3,
    callbacks=[tf.keras.callbacks.EarlyStopping(verbose=1, patience=2)],
    verbose=2,
)
