"""Online learning for ad pricing: the model follows a stream of five-minute chunks."""
import numpy as np
import keras
from keras import layers

CHUNK, FEATURES, CHUNKS = 2048, 60, 64
rng = np.random.default_rng(0)
drift = rng.normal(size=FEATURES) / 8


def stream():
    global drift
    for _ in range(CHUNKS):
        drift = drift + rng.normal(size=FEATURES) * 0.01
        x = rng.normal(size=(CHUNK, FEATURES)).astype("float32")
        yield x, np.tanh(x @ drift).astype("float32")[:, None]


model = keras.Sequential([
    keras.Input((FEATURES,)),
    layers.Normalization(mean=0.0, variance=1.0),
    layers.Dense(256, activation="relu"),
    layers.Dense(256, activation="relu"),
    layers.Dense(1),
])
model.compile(keras.optimizers.Adam(1e-3), loss="huber")

history = []
for k, (x, y) in enumerate(stream()):
    history.append(float(model.train_on_batch(x, y)))
    if k % 30 == 29:
        print(f"chunk {k + 1}: loss {np.mean(history[-30:]):.5f}")
