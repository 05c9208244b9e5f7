"""A trap: transfer learning, where batch normalization runs in inference mode."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(37)
keras.mixed_precision.set_global_policy("mixed_bfloat16")
rng = np.random.default_rng(37)
x = rng.random((16 * 40, 64, 64, 3), dtype=np.float32)
y = rng.integers(0, 5, len(x))


def base():
    """Return a network as if it had been trained."""
    model = keras.Sequential([keras.Input((64, 64, 3))])
    for filters in (16, 32, 64):
        model.add(keras.layers.Conv2D(filters, 3, strides=2, padding="same", use_bias=False))
        model.add(keras.layers.BatchNormalization())
        model.add(keras.layers.ReLU())
    return model


frozen = base()
frozen.trainable = False
inputs = keras.Input((64, 64, 3))
features = frozen(inputs, training=False)
pooled = keras.layers.GlobalAveragePooling2D()(features)
model = keras.Model(inputs, keras.layers.Dense(5, activation="softmax", dtype="float32")(pooled))
model.compile("adam", "sparse_categorical_crossentropy")
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(x, y, batch_size=16, epochs=4, verbose=2, callbacks=[watch])
