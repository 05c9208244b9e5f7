"""Mineral classification from hyperspectral pixels stored in a compressed archive."""
import os
import tempfile
import numpy as np
import keras
from keras import layers

BANDS, PIXELS, CLASSES, BATCH = 160, 5000, 9, 64
folder = tempfile.mkdtemp()
rng = np.random.default_rng(0)


def write_scene(path):
    label = rng.integers(0, CLASSES, PIXELS).astype("uint8")
    library = np.cumsum(rng.normal(size=(CLASSES, BANDS)), axis=1) * 40
    spectra = (library[label] + rng.normal(0, 20, (PIXELS, BANDS)) + 2000).astype("uint16")
    np.savez_compressed(path, spectra=spectra, label=label)


scene = os.path.join(folder, "cuprite.npz")
write_scene(scene)


class Pixels(keras.utils.PyDataset):
    def __init__(self, path, batch_size, **kw):
        super().__init__(**kw)
        self.scene = np.load(path)
        self.batch_size = batch_size
        self.order = np.random.permutation(len(self.scene["label"]))

    def __len__(self):
        return len(self.order) // self.batch_size

    def __getitem__(self, i):
        rows = np.sort(self.order[i * self.batch_size : (i + 1) * self.batch_size])
        spectra = self.scene["spectra"][rows].astype("float32") / 4000.0
        # continuum removal, coarse
        spectra = spectra / spectra.max(axis=1, keepdims=True)
        return spectra[..., None], self.scene["label"][rows]

    def on_epoch_end(self):
        np.random.shuffle(self.order)


model = keras.Sequential([
    keras.Input((BANDS, 1)),
    layers.Conv1D(16, 7, padding="same", activation="relu"),
    layers.MaxPooling1D(2),
    layers.Conv1D(32, 5, padding="same", activation="relu"),
    layers.MaxPooling1D(2),
    layers.Conv1D(64, 3, padding="same", activation="relu"),
    layers.GlobalAveragePooling1D(),
    layers.Dense(CLASSES, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(Pixels(scene, BATCH), epochs=1, verbose=2)
