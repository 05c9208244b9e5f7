"""An image user: residual blocks with batch normalization, as every tutorial has them."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(18)
rng = np.random.default_rng(18)
x = rng.random((16 * 25, 48, 48, 3), dtype=np.float32)
y = rng.integers(0, 10, len(x))


def normalized(x, filters):
    """Return a convolution with normalization and activation."""
    x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = keras.layers.BatchNormalization()(x)
    return keras.layers.ReLU()(x)


inputs = keras.Input((48, 48, 3))
x_in = normalized(inputs, 32)
for _ in range(2):
    x_in = keras.layers.Add()([x_in, normalized(normalized(x_in, 32), 32)])
pooled = keras.layers.GlobalAveragePooling2D()(x_in)
model = keras.Model(inputs, keras.layers.Dense(10, activation="softmax")(pooled))
model.compile("adam", "sparse_categorical_crossentropy")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(x, y, batch_size=16, epochs=6, verbose=2, callbacks=[watch])
