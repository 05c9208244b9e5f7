"""Sunspot forecasting with a windowed data set."""
import keras
import numpy as np
import tensorflow as tf

WINDOW, BATCH, BUFFER = 40, 128, 1000
time = np.arange(9000, dtype="float32")
rng = np.random.default_rng(3)
series = 40 + 30 * np.sin(time / 132 * 2 * np.pi) + rng.normal(0, 8, len(time))
series = series.astype("float32")
split = 7700
x_train, x_valid = series[:split], series[split:]


def windowed_dataset(series):
    ds = tf.data.Dataset.from_tensor_slices(series[:, None])
    ds = ds.window(WINDOW + 1, shift=1, drop_remainder=True)
    ds = ds.flat_map(lambda w: w.batch(WINDOW + 1))
    ds = ds.shuffle(BUFFER)
    ds = ds.map(lambda w: (w[:-1], w[-1]))
    ds = ds.batch(BATCH, drop_remainder=True)
    return ds.prefetch(1)


model = keras.Sequential([
    keras.layers.Input((WINDOW, 1)),
    keras.layers.Conv1D(32, 5, padding="causal", activation="relu"),
    keras.layers.Conv1D(32, 3, strides=2, activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(30, activation="relu"),
    keras.layers.Dense(1),
    keras.layers.Rescaling(400.0),
])
model.compile(loss=keras.losses.Huber(), optimizer=keras.optimizers.SGD(1e-6, momentum=0.9), metrics=["mae"])
model.fit(windowed_dataset(x_train), epochs=3, verbose=2)
