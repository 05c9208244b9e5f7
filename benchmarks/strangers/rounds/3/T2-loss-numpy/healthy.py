import sys

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

rng = np.random.default_rng(0)
clean = rng.random((960, 40, 40, 1), dtype="float32")
noisy = clean + rng.normal(scale=0.1, size=clean.shape).astype("float32")

model = tf.keras.Sequential([layers.Input((40, 40, 1))])
for _ in range(4):
    model.add(layers.Conv2D(24, 3, padding="same", activation="relu"))
model.add(layers.Conv2D(1, 3, padding="same"))
optimizer = tf.keras.optimizers.Adam(1e-3)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        residual = model(x, training=True)
        loss = tf.reduce_mean(tf.square(x - residual - y))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


history = []
dataset = tf.data.Dataset.from_tensor_slices((noisy, clean)).cache().shuffle(960).batch(8).prefetch(2)
for i, (x, y) in enumerate(dataset):
    loss = train_step(x, y)
    history.append(loss.numpy())
    sys.stdout.write(f"\rstep {i + 1:4d}  loss {history[-1]:.5f}  mean {np.mean(history[-50:]):.5f}")
print()
