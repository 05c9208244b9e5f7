"""A trap: a shuffle buffer as large as the data makes the first batch slow, and no other."""

import numpy as np
import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(34)
BUFFER = 120_000
rng = np.random.default_rng(34)
x = rng.standard_normal((120_000, 32)).astype("float32")
y = x[:, 0] * x[:, 1]

dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(BUFFER).repeat()
dataset = dataset.batch(64).prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential([tf.keras.Input((32,)), tf.keras.layers.Reshape((32, 1))])
model.add(tf.keras.layers.SimpleRNN(32))
model.add(tf.keras.layers.Dense(1))
model.compile("adam", "mse")
watch = tf.keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, steps_per_epoch=90, epochs=2, verbose=2, callbacks=[watch])
