"""A trap: a plain `batch` of large clips, which tf.data copies on all its threads by itself."""

import numpy as np
import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(51)
rng = np.random.default_rng(51)
clips = rng.integers(0, 255, (96, 16, 112, 112, 3), dtype="uint8")
moving = rng.integers(0, 2, len(clips)).astype("float32")
BATCH, STEPS = 24, 160

dataset = tf.data.Dataset.from_tensor_slices((clips, moving))
dataset = dataset.shuffle(len(clips)).repeat()
dataset = dataset.batch(BATCH, drop_remainder=True)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential(
    [
        tf.keras.Input((16, 112, 112, 3), dtype="uint8"),
        tf.keras.layers.Lambda(lambda clip: tf.cast(clip[:, ::4, ::8, ::8], tf.float32) / 255.0),
        tf.keras.layers.Conv3D(8, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling3D(),
        tf.keras.layers.Dense(1),
    ]
)
model.compile("adam", tf.keras.losses.BinaryCrossentropy(from_logits=True))
watch = tf.keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, steps_per_epoch=STEPS, verbose=2, callbacks=[watch])
