import numpy as np
import tensorflow as tf

window_size = 30
batch_size = 64
shuffle_buffer = 1000

time = np.arange(6000, dtype="float32")
noise = np.random.default_rng(42).normal(size=6000)
series = (10 + 0.01 * time + 20 * np.sin(2 * np.pi * time / 132) + 3 * noise).astype("float32")


def windowed_dataset(series):
    windows = np.lib.stride_tricks.sliding_window_view(series, window_size + 1)
    ds = tf.data.Dataset.from_tensor_slices((windows[:, :-1, None], windows[:, -1]))
    return ds.shuffle(shuffle_buffer).batch(batch_size).prefetch(1)


model = tf.keras.models.Sequential(
    [
        tf.keras.Input((window_size, 1)),
        tf.keras.layers.Conv1D(32, 5, padding="causal", activation="relu"),
        tf.keras.layers.Conv1D(32, 5, padding="causal", activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(30, activation="relu"),
        tf.keras.layers.Dense(1),
        tf.keras.layers.Lambda(lambda x: x * 100.0),
    ]
)
model.compile(loss=tf.keras.losses.Huber(), optimizer=tf.keras.optimizers.SGD(1e-6, momentum=0.9), metrics=["mae"])
model.fit(windowed_dataset(series), epochs=3, verbose=2)
