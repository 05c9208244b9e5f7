"""A user with data from another framework: channels first, turned around at each convolution."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(26)
rng = np.random.default_rng(26)
x = rng.random((16 * 25, 3, 64, 64), dtype=np.float32)
y = rng.integers(0, 4, len(x))

inputs = keras.Input((3, 64, 64))
h = inputs
for filters in (16, 16, 16):
    h = keras.layers.Permute((2, 3, 1))(h)
    h = keras.layers.Conv2D(filters, 3, padding="same")(h)
    h = keras.layers.Permute((3, 1, 2))(h)
    h = keras.layers.PReLU(shared_axes=(2, 3))(h)
h = keras.layers.GlobalAveragePooling2D("channels_first")(h)
model = keras.Model(inputs, keras.layers.Dense(4, activation="softmax")(h))
model.compile("adam", "sparse_categorical_crossentropy")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(x, y, batch_size=16, epochs=4, verbose=2, callbacks=[watch])
