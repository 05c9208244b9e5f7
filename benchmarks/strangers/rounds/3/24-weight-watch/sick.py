import logging

import numpy as np
import tensorflow as tf

logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
log = logging.getLogger("demand")


class WeightMonitor(tf.keras.callbacks.Callback):
    """Follows the size of the weights to spot diverging runs."""

    def __init__(self):
        super().__init__()
        self.norms = []

    def on_train_batch_end(self, batch, logs=None):
        self.norms.append([np.linalg.norm(w) for w in self.model.get_weights()])
        if not np.isfinite(self.norms[-1]).all():
            log.error("weights are not finite")
            self.model.stop_training = True


def make_data(rows=7680, columns=200):
    rng = np.random.default_rng(2024)
    x = rng.normal(size=(rows, columns)).astype("float32")
    y = (x[:, :5].sum(1) + rng.normal(size=rows)).astype("float32")
    return x, y


def make_model(columns):
    inputs = tf.keras.Input((columns,))
    h = tf.keras.layers.Dense(768, activation="relu")(inputs)
    h = tf.keras.layers.Dense(768, activation="relu")(h)
    h = tf.keras.layers.Dense(256, activation="relu")(h)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(h))
    model.compile(optimizer=tf.keras.optimizers.SGD(1e-2), loss="mse", metrics=["mae"])
    return model


def main():
    x, y = make_data()
    model = make_model(x.shape[1])
    monitor = WeightMonitor()
    history = model.fit(x, y, batch_size=64, epochs=2, verbose=0, callbacks=[monitor])
    log.info("loss %s, last norms %s", history.history["loss"], np.round(monitor.norms[-1], 2))


main()
