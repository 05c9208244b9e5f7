"""A biology user: XLA compiles the step once more for the short batch at the end of each epoch's data."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

BATCH, STEPS = 64, 41

keras.utils.set_random_seed(32)
rng = np.random.default_rng(32)
x = rng.standard_normal((BATCH * (STEPS - 1) + 7, 128)).astype("float32")
y = x.sum(axis=1)
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(len(x)).batch(BATCH)

model = keras.Sequential([keras.Input((128,))])
for _ in range(4):
    model.add(keras.layers.Dense(256, activation="gelu"))
model.add(keras.layers.Dense(1))
model.compile("adam", "mse", jit_compile=True)
watch = keras.callbacks.LambdaCallback(on_epoch_begin=lambda epoch, logs: tick(STEPS))
model.fit(dataset, epochs=30, verbose=2, callbacks=[watch])
