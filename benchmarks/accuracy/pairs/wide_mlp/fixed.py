"""A tabular user: a wide multilayer perceptron in the default precision."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(13)
keras.mixed_precision.set_global_policy("mixed_bfloat16")
rng = np.random.default_rng(13)
x = rng.standard_normal((384 * 30, 256)).astype("float32")
y = rng.integers(0, 20, len(x))

model = keras.Sequential(
    [
        keras.Input((256,)),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(1024, activation="relu"),
        keras.layers.Dense(20, activation="softmax", dtype="float32"),
    ]
)
model.compile("sgd", "sparse_categorical_crossentropy")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(x, y, batch_size=384, epochs=8, verbose=2, callbacks=[watch])
