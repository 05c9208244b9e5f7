"""A microscopist: looks at the middle of large images, which an old option has one thread copy into a batch."""

import keras
import numpy as np
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(41)
images = np.random.default_rng(41).random((64, 384, 384, 3), dtype=np.float32)
labels = np.arange(len(images)) % 4

dataset = tf.data.Dataset.from_tensor_slices((images, labels)).repeat()
dataset = dataset.batch(64)
dataset = dataset.prefetch(tf.data.AUTOTUNE)
options = tf.data.Options()
options.experimental_optimization.parallel_batch = False
dataset = dataset.with_options(options)

model = keras.Sequential(
    [
        keras.Input((384, 384, 3)),
        keras.layers.Cropping2D(176),
        keras.layers.Flatten(),
        keras.layers.Dense(4),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, steps_per_epoch=120, epochs=4, verbose=2, callbacks=[watch])
