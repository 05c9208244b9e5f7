"""Keyword spotting: WAV clips -> log-mel -> small CRNN (keras PyDataset, SpecAugment)."""
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import librosa
import numpy as np
import soundfile as sf
import keras
from keras import layers

RATE_IN, RATE, SECONDS = 44100, 16000, 1.0
N_MELS, HOP, N_FFT = 40, 160, 512
CLASSES, CLIPS, BATCH, EPOCHS = 6, 192, 16, 8


def write_clips(root, rng):
    paths, labels = [], []
    t = np.arange(int(RATE_IN * SECONDS)) / RATE_IN
    for i in range(CLIPS):
        label = int(rng.integers(CLASSES))
        f0 = 180 * (1.3 ** label) * rng.uniform(0.95, 1.05)
        sweep = np.sin(2 * np.pi * (f0 * t + 0.5 * 300 * label * t ** 2))
        y = 0.4 * sweep * np.hanning(t.size) + 0.05 * rng.normal(size=t.size)
        path = os.path.join(root, f"kw{label}_{i:04d}.wav")
        sf.write(path, y.astype("float32"), RATE_IN, subtype="PCM_16")
        paths.append(path)
        labels.append(label)
    return paths, np.array(labels)


def log_mel(path):
    y, _ = librosa.load(path, sr=RATE)
    mel = librosa.feature.melspectrogram(
        y=y, sr=RATE, n_fft=N_FFT, hop_length=HOP, n_mels=N_MELS)
    db = librosa.power_to_db(mel, ref=np.max)
    return ((db + 40.0) / 40.0).T[:100].astype("float32")


def spec_augment(spec, rng):
    spec = spec.copy()
    t, f = rng.integers(0, 80), rng.integers(0, N_MELS - 6)
    spec[t:t + rng.integers(5, 20)] = 0.0
    spec[:, f:f + rng.integers(2, 6)] = 0.0
    return spec


class Clips(keras.utils.PyDataset):
    def __init__(self, paths, labels, **kwargs):
        super().__init__(**kwargs)
        self.paths, self.labels = paths, labels
        self.rng = np.random.default_rng(17)
        self.order = self.rng.permutation(len(paths))

    def __len__(self):
        return len(self.paths) // BATCH

    def __getitem__(self, index):
        sel = self.order[index * BATCH:(index + 1) * BATCH]
        x = np.stack([spec_augment(log_mel(self.paths[i]), self.rng) for i in sel])
        return x, self.labels[sel]

    def on_epoch_end(self):
        self.order = self.rng.permutation(len(self.paths))


def build_model():
    inputs = keras.Input((100, N_MELS))
    x = layers.Reshape((100, N_MELS, 1))(inputs)
    for filters in (24, 48):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D((2, 2))(x)
    x = layers.Reshape((25, N_MELS // 4 * 48))(x)
    x = layers.Dense(64, activation="relu")(x)
    x = layers.Bidirectional(layers.GRU(32))(x)
    return keras.Model(inputs, layers.Dense(CLASSES)(layers.Dropout(0.2)(x)))


def main():
    keras.utils.set_random_seed(17)
    with tempfile.TemporaryDirectory() as root:
        paths, labels = write_clips(root, np.random.default_rng(17))
        model = build_model()
        model.compile(
            optimizer=keras.optimizers.Adam(1e-3),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )
        model.fit(Clips(paths, labels, workers=2), epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
