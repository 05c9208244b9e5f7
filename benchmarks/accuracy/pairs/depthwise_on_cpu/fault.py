"""A trap: MobileNet's separable blocks, for which a CPU has no better form."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(38)
rng = np.random.default_rng(38)
x = rng.random((16 * 25, 64, 64, 3), dtype=np.float32)
y = rng.integers(0, 5, len(x))


def block(x, filters, stride=1):
    """Return a block without normalization."""
    x = keras.layers.DepthwiseConv2D(3, stride, padding="same", activation="relu")(x)
    x = keras.layers.Conv2D(filters, 1, activation="relu")(x)
    return x  # noqa: RET504 - one line for each layer


inputs = keras.Input((64, 64, 3))
h = keras.layers.Conv2D(32, 3, 2, padding="same", activation="relu")(inputs)
h = block(h, 64)
h = block(h, 64)
h = block(h, 128, 2)
h = keras.layers.GlobalAveragePooling2D()(h)
model = keras.Model(inputs, keras.layers.Dense(5, activation="softmax")(h))
model.compile("sgd", "sparse_categorical_crossentropy")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(x, y, batch_size=16, epochs=3, verbose=2, callbacks=[watch])
