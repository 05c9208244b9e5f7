"""A trap: a segmentation head of ten classes and three input channels; all else is a multiple of 16."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(33)
keras.mixed_precision.set_global_policy("mixed_bfloat16")
CLASSES = 10
rng = np.random.default_rng(33)
x = rng.random((8 * 30, 64, 64, 3), dtype=np.float32)
y = rng.integers(0, 10, (len(x), 64, 64))

model = keras.Sequential(
    [
        keras.Input((64, 64, 3)),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
        keras.layers.Conv2D(CLASSES, 1),
    ]
)
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(x, y, batch_size=8, epochs=3, verbose=2, callbacks=[watch])
