"""A remote-sensing user: tiles become float32, are shuffled at full size, then cropped."""

import numpy as np
import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(52)
rng = np.random.default_rng(52)
tiles = rng.integers(0, 255, (1000, 224, 224, 3), dtype="uint8")
clouds = rng.integers(0, 4, len(tiles))
BUFFER, SIDE, BATCH = 1000, 64, 16


def to_float(tile, kind):
    """Scale to 0 to 1."""
    return tf.image.convert_image_dtype(tile, tf.float32), kind


def crop(tile, kind):
    """Cut a window out, anywhere."""
    return tf.image.random_crop(tile, (SIDE, SIDE, 3)), kind


dataset = tf.data.Dataset.from_tensor_slices((tiles, clouds)).repeat()
dataset = dataset.map(to_float, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.map(crop, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.shuffle(BUFFER)
dataset = dataset.batch(BATCH).prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential(
    [
        tf.keras.Input((SIDE, SIDE, 3)),
        tf.keras.layers.Conv2D(24, 3, strides=2, activation="relu"),
        tf.keras.layers.Conv2D(48, 3, strides=2, activation="relu"),
        tf.keras.layers.GlobalAveragePooling2D(),
        tf.keras.layers.Dense(4),
    ]
)
optimizer = tf.keras.optimizers.Adam()
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    """Take one step."""
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for step, (x, y) in enumerate(dataset.take(160)):
    tick()
    loss = train_step(x, y)
    if step % 50 == 0:
        print(f"step {step}: {loss:.3f}")
