"""Denoising autoencoder on audio frames: a PyDataset with two threads mixes noise at random SNR,
the model takes the STFT in the graph, with its own train_step.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import scipy.signal
import tensorflow as tf
import keras
from keras import layers

RATE, LENGTH, BATCH = 16000, 8192, 16
FRAME, HOP = 512, 256
EPOCHS, STEPS = 3, 32


def speech_like(n, rng):
    """Harmonic tones with a slow envelope through a formant filter."""
    t = np.arange(LENGTH) / RATE
    f0 = rng.uniform(90, 220, (n, 1)) * (1 + 0.03 * np.sin(2 * np.pi * 5 * t))
    phase = 2 * np.pi * np.cumsum(f0, axis=1) / RATE
    wave = sum(np.sin(k * phase) / k for k in range(1, 9))
    envelope = np.abs(np.sin(2 * np.pi * rng.uniform(1, 3, (n, 1)) * t))
    b, a = scipy.signal.butter(2, [300 / 8000, 3400 / 8000], "bandpass")
    clean = scipy.signal.lfilter(b, a, wave * envelope, axis=1)
    return (0.3 * clean / np.abs(clean).max(axis=1, keepdims=True)).astype("float32")


class NoisyMix(keras.utils.PyDataset):
    """Clean clips plus a slice of a long coloured noise at -5..10 dB."""

    def __init__(self, clean, noise, **kwargs):
        super().__init__(**kwargs)
        self.clean, self.noise = clean, noise
        self.power = np.mean(clean ** 2, axis=1, keepdims=True)

    def __len__(self):
        return STEPS

    def __getitem__(self, index):
        rng = np.random.default_rng()
        sel = rng.integers(0, len(self.clean), BATCH)
        starts = rng.integers(0, len(self.noise) - LENGTH, BATCH)
        noise = self.noise[starts[:, None] + np.arange(LENGTH)]
        snr = rng.uniform(-5, 10, (BATCH, 1))
        gain = np.sqrt(self.power[sel] / (noise ** 2).mean(axis=1, keepdims=True) / 10 ** (snr / 10))
        clean = self.clean[sel]
        return (clean + gain * noise).astype("float32"), clean


def mask_net():
    inputs = keras.Input((None, FRAME // 2 + 1))
    x = layers.LayerNormalization()(inputs)
    x = layers.Conv1D(256, 5, padding="same", activation="relu")(x)
    for rate in (1, 2, 4, 8):
        y = layers.Conv1D(256, 3, padding="same", dilation_rate=rate, activation="relu")(x)
        x = layers.Add()([x, layers.BatchNormalization()(y)])
    return keras.Model(inputs, layers.Dense(FRAME // 2 + 1, activation="sigmoid")(x))


class Denoiser(keras.Model):
    def __init__(self):
        super().__init__()
        self.net = mask_net()
        self.tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.tracker]

    def call(self, wave, training=None):
        spec = tf.signal.stft(wave, FRAME, HOP)
        mask = self.net(tf.math.log1p(10.0 * tf.abs(spec)), training=training)
        return tf.cast(mask, tf.complex64) * spec

    def train_step(self, data):
        noisy, clean = data
        target = tf.abs(tf.signal.stft(clean, FRAME, HOP)) ** 0.3
        with tf.GradientTape() as tape:
            estimate = (tf.abs(self(noisy, training=True)) + 1e-6) ** 0.3
            loss = tf.reduce_mean(tf.square(target - estimate))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


def main():
    keras.utils.set_random_seed(9)
    rng = np.random.default_rng(9)
    clean = speech_like(300, rng)
    noise = scipy.signal.lfilter([1.0], [1.0, -0.9], rng.normal(0, 0.1, RATE * 20)).astype("float32")
    model = Denoiser()
    model.compile(optimizer=keras.optimizers.Adam(1e-3))
    model.fit(NoisyMix(clean, noise, workers=2, max_queue_size=6), epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
