"""Music genre classification from log-mel spectrograms with SpecAugment."""
import os
import tempfile

import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(11)

GENRES = ["blues", "classical", "hiphop", "jazz", "metal", "techno"]
FRAMES = 64
MELS = 32
BATCH_SIZE = 64
EPOCHS = 32
CLIPS_PER_GENRE = 320


def write_spectrograms(folder):
    """One .npz per genre with the log-mel clips, as exported by the feature extraction."""
    rng = np.random.default_rng(0)
    t = np.arange(FRAMES)[:, None]
    f = np.arange(MELS)[None, :]
    for g, genre in enumerate(GENRES):
        tempo = 6 + 3 * g
        shape = np.sin(2 * np.pi * t / tempo) * np.exp(-((f - 6 * g - 6) / 10.0) ** 2)
        gain = rng.uniform(0.3, 1.0, (CLIPS_PER_GENRE, 1, 1))
        clips = gain * shape + rng.normal(0, 0.8, (CLIPS_PER_GENRE, FRAMES, MELS))
        np.savez(os.path.join(folder, genre + ".npz"), mel=clips.astype("float32"))


def load_spectrograms(folder):
    xs, ys = [], []
    for g, genre in enumerate(GENRES):
        mel = np.load(os.path.join(folder, genre + ".npz"))["mel"]
        xs.append(mel)
        ys.append(np.full(len(mel), g))
    x, y = np.concatenate(xs)[..., None], np.concatenate(ys)
    order = np.random.permutation(len(x))
    return x[order], y[order]


class SpecAugment(layers.Layer):
    """Shifts each clip in time and masks random bands of frequencies and stretches of time."""

    def __init__(self, max_freq=10, max_time=20, n_masks=2, **kwargs):
        super().__init__(**kwargs)
        self.max_freq = max_freq
        self.max_time = max_time
        self.n_masks = n_masks

    def _keep(self, n, length, max_width):
        width = tf.random.uniform((n, 1), 0, max_width + 1, tf.int32)
        start = tf.random.uniform((n, 1), 0, length - max_width, tf.int32)
        index = tf.range(length)[None, :]
        inside = (index >= start) & (index < start + width)
        return tf.cast(~inside, tf.float32)

    def _augment(self, clips):
        n = tf.shape(clips)[0]
        frames = tf.random.uniform((n, 1), 0, FRAMES, tf.int32) + tf.range(FRAMES)[None, :]
        clips = tf.gather(clips, frames % FRAMES, batch_dims=1)
        clips = clips + tf.random.normal((n, 1, 1, 1), stddev=0.1)
        for _ in range(self.n_masks):
            clips = clips * self._keep(n, FRAMES, self.max_time)[:, :, None, None]
            clips = clips * self._keep(n, MELS, self.max_freq)[:, None, :, None]
        return clips

    def call(self, x, training=False):
        if not training:
            return x
        return self._augment(x)


def build_model(train_x):
    norm = layers.Normalization(axis=None)
    norm.adapt(train_x)
    model = keras.Sequential([
        keras.Input((FRAMES, MELS, 1)),
        norm,
        SpecAugment(),
        layers.Conv2D(8, 5, strides=2, padding="same", activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(2),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(2),
        layers.Conv2D(32, 3, padding="same", activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dropout(0.3),
        layers.Dense(len(GENRES), activation="softmax"),
    ])
    model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy",
                  metrics=["accuracy"])
    return model


def main():
    with tempfile.TemporaryDirectory() as folder:
        write_spectrograms(folder)
        x, y = load_spectrograms(folder)
    n_test = len(x) // 10
    model = build_model(x[n_test:])
    train = (tf.data.Dataset.from_tensor_slices((x[n_test:], y[n_test:]))
             .shuffle(2000).batch(BATCH_SIZE, drop_remainder=True).prefetch(tf.data.AUTOTUNE))
    model.fit(train, epochs=EPOCHS, verbose=2)
    print(dict(zip(model.metrics_names, model.evaluate(x[:n_test], y[:n_test], verbose=0))))


if __name__ == "__main__":
    main()
