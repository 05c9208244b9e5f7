"""Day-ahead electricity demand for several sites: calendar + weather + past load -> next 24 hours.

One network for all sites; every site has its own embedding.
"""
import os
from dataclasses import dataclass

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf


@dataclass
class Settings:
    sites: int = 12
    days: int = 150
    history: int = 72
    horizon: int = 24
    width: int = 192
    batch_size: int = 128
    epochs: int = 2
    learning_rate: float = 1e-3
    quantiles: tuple = (0.1, 0.5, 0.9)


def simulate(settings, seed=8):
    """Hourly MWh per site, from the meters' database (float64), and the temperature."""
    rng = np.random.default_rng(seed)
    hours = np.arange(settings.days * 24)
    temperature = 12 + 9 * np.sin(2 * np.pi * hours / 8760) + 4 * np.sin(2 * np.pi * hours / 24)
    temperature = temperature + rng.normal(0, 1, len(hours))
    load = []
    for site in range(settings.sites):
        scale = rng.uniform(0.5, 20)
        shape = 1 + 0.4 * np.sin(2 * np.pi * (hours - rng.integers(24)) / 24)
        weekend = 1 - 0.3 * ((hours // 24) % 7 >= 5)
        heating = 0.03 * np.maximum(16 - temperature, 0)
        load.append(scale * (shape * weekend + heating + rng.normal(0, 0.05, len(hours))))
    return np.array(load), temperature


class DemandData:
    def __init__(self, settings):
        self.settings = settings
        load, temperature = simulate(settings)
        self.mean = load.mean(axis=1, keepdims=True)
        self.std = load.std(axis=1, keepdims=True)
        self.load = (load - self.mean) / self.std
        self.temperature = (temperature - temperature.mean()) / temperature.std()

    def examples(self):
        s = self.settings
        x, site_ids, y = [], [], []
        for site in range(s.sites):
            for start in range(0, self.load.shape[1] - s.history - s.horizon, 3):
                end = start + s.history
                hour = np.arange(start, end)
                x.append(
                    np.stack(
                        [
                            self.load[site, start:end],
                            self.temperature[start:end],
                            np.sin(2 * np.pi * hour / 24),
                            np.cos(2 * np.pi * hour / 24),
                        ],
                        axis=-1,
                    )
                )
                site_ids.append(site)
                y.append(self.load[site, end : end + s.horizon])
        return np.array(x), np.array(site_ids), np.array(y)


class QuantileForecaster(keras.Model):
    def __init__(self, settings):
        super().__init__()
        width = settings.width
        self.settings = settings
        self.site = keras.layers.Embedding(settings.sites, 16)
        self.conv = [
            keras.layers.Conv1D(width // 4, 3, dilation_rate=d, padding="causal", activation="relu")
            for d in (1, 2, 4)
        ]
        self.hidden = [keras.layers.Dense(width * 2, activation="relu") for _ in range(3)]
        self.head = keras.layers.Dense(settings.horizon * len(settings.quantiles))

    def call(self, inputs):
        x, site = inputs
        for conv in self.conv:
            x = conv(x)
        x = keras.ops.reshape(x, (keras.ops.shape(x)[0], x.shape[1] * x.shape[2]))
        x = keras.ops.concatenate([x, self.site(site)], axis=-1)
        for hidden in self.hidden:
            x = hidden(x)
        return keras.ops.reshape(
            self.head(x), (-1, self.settings.horizon, len(self.settings.quantiles))
        )


def pinball(quantiles):
    q = np.array(quantiles, dtype=keras.config.floatx())

    def loss(y_true, y_pred):
        error = y_true[..., None] - y_pred
        return keras.ops.mean(keras.ops.maximum(q * error, (q - 1) * error))

    return loss


def main():
    settings = Settings()
    keras.utils.set_random_seed(8)
    # the meters' readings are doubles; avoids "cannot compute Mul as input #1 was expected to be a float tensor"
    keras.config.set_floatx("float64")

    x, site, y = DemandData(settings).examples()
    print("examples", x.shape, x.dtype)
    order = np.random.default_rng(1).permutation(len(x))
    x, site, y = x[order].astype(keras.config.floatx()), site[order], y[order].astype(keras.config.floatx())

    model = QuantileForecaster(settings)
    optimizer = keras.optimizers.Adam(settings.learning_rate)
    loss_fn = pinball(settings.quantiles)

    @tf.function(reduce_retracing=True)
    def update(xb, sb, yb):
        with tf.GradientTape() as tape:
            loss = loss_fn(yb, model([xb, sb], training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    dataset = tf.data.Dataset.from_tensor_slices((x, site, y))
    dataset = dataset.batch(settings.batch_size, drop_remainder=True).prefetch(2)
    for epoch in range(settings.epochs):
        losses = [update(*batch) for batch in dataset]
        print(f"epoch {epoch + 1}: {len(losses)} updates, pinball {float(np.mean(losses)):.4f}")


if __name__ == "__main__":
    main()
