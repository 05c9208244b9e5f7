import numpy as np
import tensorflow as tf
from tensorflow import keras

NOISE_LEVELS = [0.0, 0.25, 0.5, 1.0]


def get_data():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(12, 64)) * 0.6
    y = rng.integers(0, 12, 14000)
    x = (centers[y] + rng.normal(size=(14000, 64))).astype(np.float32)
    return (x[:12400], y[:12400]), (x[12400:], y[12400:])


def train(x, y):
    m = keras.Sequential([
        keras.Input((64,)),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dropout(0.3),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(12, activation="softmax"),
    ])
    m.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    m.fit(x, y, epochs=24, batch_size=64, validation_split=0.1, verbose=2)
    return m


def report(m, x, y):
    rng = np.random.default_rng(5)
    rows = []
    for level in NOISE_LEVELS:
        noisy = x + rng.normal(size=x.shape).astype(np.float32) * level
        loss, acc = m.evaluate(noisy, y, batch_size=512, verbose=0)
        rows.append((level, loss, acc))
    return rows


if __name__ == "__main__":
    keras.utils.set_random_seed(1)
    (xtr, ytr), (xte, yte) = get_data()
    net = train(xtr, ytr)
    for level, loss, acc in report(net, xte, yte):
        print(f"noise {level:4.2f}   loss {loss:.3f}   accuracy {acc:.3f}")
