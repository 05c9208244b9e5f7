"""A tabular user: XLA, and an epoch whose last batch is smaller than the others."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(45)
x = np.random.default_rng(45).standard_normal((1000, 64)).astype("float32")
y = x.sum(axis=1)

dataset = tf.data.Dataset.from_tensor_slices((x, y))
dataset = dataset.batch(64)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(512), keras.layers.Dense(1)])
model.compile("sgd", "mse", jit_compile=True)
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, epochs=12, verbose=2, callbacks=[watch])
