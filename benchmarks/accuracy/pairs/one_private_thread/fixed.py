"""A medical-image user: a thread pool of one, copied from an answer about reproducible runs."""

import numpy as np
import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(12)
volumes = np.random.default_rng(12).random((256, 96, 96, 3), dtype=np.float32)
masks = (volumes[..., :1] > 0.5).mean(axis=(1, 2, 3)).astype("float32")


def prepare(volume, target):
    """Smooth and shrink."""
    smooth = tf.nn.avg_pool2d(volume[None], 5, 1, "SAME")
    for _ in range(4):
        smooth = tf.nn.max_pool2d(smooth, 3, 1, "SAME")
    return tf.image.resize(smooth, (24, 24), method="bicubic", antialias=True)[0], target


dataset = tf.data.Dataset.from_tensor_slices((volumes, masks)).repeat().shuffle(256)
dataset = dataset.map(prepare, num_parallel_calls=4).batch(16).prefetch(2)

model = tf.keras.Sequential(
    [
        tf.keras.Input((24, 24, 3)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(32, activation="relu"),
        tf.keras.layers.Dense(1),
    ]
)
model.compile("adam", "mae")
watch = tf.keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, steps_per_epoch=120, epochs=6, verbose=2, callbacks=[watch])
