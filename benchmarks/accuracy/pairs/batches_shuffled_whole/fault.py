"""A tabular user: click logs, in the order they were written, are batched and then shuffled."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(53)
rng = np.random.default_rng(53)
ROWS, BATCH = 24_000, 240
clicks = {
    "hour": (np.arange(ROWS) * 24 // ROWS).astype("int32"),
    "place": rng.integers(0, 500, ROWS).astype("int32"),
    "numbers": rng.standard_normal((ROWS, 40)).astype("float32"),
}
bought = (clicks["hour"] > 17).astype("float32")

dataset = tf.data.Dataset.from_tensor_slices((clicks, bought))
dataset = dataset.batch(BATCH).shuffle(50).prefetch(tf.data.AUTOTUNE)

hour = keras.Input((), dtype="int32", name="hour")
place = keras.Input((), dtype="int32", name="place")
numbers = keras.Input((40,), name="numbers")
joined = keras.layers.Concatenate()(
    [keras.layers.Embedding(24, 8)(hour), keras.layers.Embedding(500, 16)(place), numbers]
)
hidden = keras.layers.Dense(256, activation="relu")(joined)
hidden = keras.layers.Dense(256, activation="relu")(hidden)
model = keras.Model([hour, place, numbers], keras.layers.Dense(1, activation="sigmoid")(hidden))
model.compile("adam", "binary_crossentropy", metrics=["AUC"])
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, epochs=2, verbose=2, callbacks=[watch])
