"""A trap: a job that waits for a slow source; a faster model saves nothing yet."""

import time

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(35)
rng = np.random.default_rng(35)


def rows():
    """Yield batches as a database over the network gives them."""
    while True:
        time.sleep(0.06)
        x = rng.standard_normal((256, 256), dtype=np.float32)
        yield x, (x[:, 0] > 0).astype("int32")


signature = (tf.TensorSpec((256, 256), tf.float32), tf.TensorSpec((256,), tf.int32))
dataset = tf.data.Dataset.from_generator(rows, output_signature=signature).prefetch(2)

model = keras.Sequential(
    [
        keras.Input((256,)),
        keras.layers.Dense(768, activation="relu"),
        keras.layers.Dense(768, activation="relu"),
        keras.layers.Dense(2, dtype="float32"),
    ]
)
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, steps_per_epoch=70, verbose=2, callbacks=[watch])
