"""Promoter recognition from DNA strings."""
import keras
import numpy as np
from keras import layers

LENGTH = 300
BASES = "ACGT"


def encode(sequence):
    matrix = np.zeros((LENGTH, 4), dtype="float32")
    for i, base in enumerate(sequence):
        if base in BASES:
            matrix[i, BASES.index(base)] = 1.0
    return matrix


class Promoters(keras.utils.PyDataset):
    def __init__(self, sequences, labels, batch_size=32, **kwargs):
        super().__init__(**kwargs)
        self.sequences = sequences
        self.labels = labels
        self.batch_size = batch_size

    def __len__(self):
        return len(self.sequences) // self.batch_size

    def __getitem__(self, i):
        part = slice(i * self.batch_size, (i + 1) * self.batch_size)
        x = np.array([encode(s) for s in self.sequences[part]])
        return x, self.labels[part]


rng = np.random.default_rng(0)
sequences = ["".join(row) for row in rng.choice(list("ACGTN"), (3200, LENGTH), p=[0.24, 0.25, 0.25, 0.25, 0.01])]
labels = rng.integers(0, 2, len(sequences)).astype("float32")

model = keras.Sequential(
    [
        keras.Input((LENGTH, 4)),
        layers.Conv1D(32, 12, activation="relu"),
        layers.MaxPooling1D(4),
        layers.Conv1D(32, 6, activation="relu"),
        layers.GlobalMaxPooling1D(),
        layers.Dense(32, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(Promoters(sequences, labels), epochs=2, verbose=2)
