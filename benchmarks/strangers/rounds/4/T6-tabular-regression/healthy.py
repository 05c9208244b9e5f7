"""House-price style regression on tabular data, with a training loop of our own."""
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

SEED = 31
BATCH = 512
EPOCHS = 4


def make_table(rows=BATCH * 60, columns=48):
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(rows, columns))
    x[:, ::6] = rng.lognormal(0, 0.5, size=x[:, ::6].shape)
    price = 3 * np.tanh(x[:, 0] - x[:, 1]) + x[:, 2] * x[:, 3] + np.log1p(x[:, 6]) * 2
    price += rng.normal(0, 0.3, rows)
    return x, price


class Standardizer:
    def fit(self, x):
        self.mean, self.std = x.mean(axis=0), x.std(axis=0) + 1e-9
        return self

    def __call__(self, x):
        return ((x - self.mean) / self.std).astype("float32")


class History:
    """Keeps every step's loss and gradient norm for the plots."""

    def __init__(self):
        self.rows = []

    def add(self, **values):
        self.rows.append({k: float(v) for k, v in values.items()})

    def average(self, key, last):
        return sum(r[key] for r in self.rows[-last:]) / last


def build(columns):
    inputs = keras.Input((columns,))
    x = keras.layers.Dense(512)(inputs)
    for _ in range(3):
        y = keras.layers.Dense(512, activation="gelu")(x)
        x = keras.layers.LayerNormalization()(keras.layers.Add()([x, y]))
    return keras.Model(inputs, keras.layers.Dense(1)(x))


class Regressor:
    def __init__(self, columns, steps):
        self.model = build(columns)
        self.optimizer = keras.optimizers.AdamW(
            keras.optimizers.schedules.CosineDecay(1e-3, steps), weight_decay=1e-4
        )
        self.loss = keras.losses.Huber()
        self.history = History()

    @tf.function
    def _update(self, x, y):
        with tf.GradientTape() as tape:
            predicted = self.model(x, training=True)
            loss = self.loss(y, predicted)
        grads = tape.gradient(loss, self.model.trainable_variables)
        norm = tf.linalg.global_norm(grads)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss, norm

    def fit(self, x, y, epochs):
        rng = np.random.default_rng(SEED)
        steps = len(x) // BATCH
        for epoch in range(epochs):
            order = rng.permutation(len(x))
            for step in range(steps):
                rows = order[step * BATCH : (step + 1) * BATCH]
                xb = tf.convert_to_tensor(x[rows])
                yb = tf.convert_to_tensor(y[rows])
                loss, norm = self._update(xb, yb)
                self.history.add(
                    loss=loss.numpy(),
                    norm=norm.numpy(),
                )
                sys.stdout.write(f"\repoch {epoch} {step + 1}/{steps} loss {loss.numpy():.4f}")
            print(f"   mean {self.history.average('loss', steps):.4f}")


def main():
    keras.utils.set_random_seed(SEED)
    x, y = make_table()
    cut = int(len(x) * 0.95)
    scale = Standardizer().fit(x[:cut])
    x_train, x_test = scale(x[:cut]), scale(x[cut:])
    y = y.astype("float32")[:, None]
    regressor = Regressor(x.shape[1], EPOCHS * (cut // BATCH))
    start = time.time()
    regressor.fit(x_train, y[:cut], EPOCHS)
    rmse = np.sqrt(np.mean((regressor.model.predict(x_test, verbose=0) - y[cut:]) ** 2))
    print(f"test RMSE {rmse:.4f} after {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
