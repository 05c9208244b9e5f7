"""A sequence model: an LSTM trained by `train_on_batch` from a Python generator."""

import numpy as np
from keras import Sequential, layers, optimizers, utils

from stopwatch import tick

TEXT = "the quick brown fox jumps over the lazy dog and runs away from the angry old bear. " * 200
WINDOW, BATCH, STEPS = 40, 32, 120

chars = sorted(set(TEXT))
index = {c: i for i, c in enumerate(chars)}
encoded = np.array([index[c] for c in TEXT])


def batches(rng):
    """Yield random windows of the text and the character after each."""
    while True:
        starts = rng.integers(0, len(encoded) - WINDOW - 1, BATCH)
        x = np.stack([encoded[s : s + WINDOW] for s in starts])
        y = encoded[starts + WINDOW]
        yield x, y


def sample(model, seed_text, length):
    """Let the model go on with a text."""
    text = seed_text
    for _ in range(length):
        x = np.array([[index[c] for c in text[-WINDOW:]]])
        text += chars[int(np.argmax(model(x)[0]))]
    return text


utils.set_random_seed(13)
model = Sequential(
    [
        layers.Input((WINDOW,)),
        layers.Embedding(len(chars), 32),
        layers.LSTM(128),
        layers.Dense(len(chars), activation="softmax"),
    ]
)
model.compile(loss="sparse_categorical_crossentropy", optimizer=optimizers.Adam(0.005))

generator = batches(np.random.default_rng(13))
losses = []
for step in range(STEPS):
    tick()
    x, y = next(generator)
    losses.append(float(model.train_on_batch(x, y)))
    if (step + 1) % 40 == 0:
        print(f"step {step + 1}: mean loss of the last 40: {np.mean(losses[-40:]):.3f}")
print(sample(model, TEXT[:WINDOW], 10))
