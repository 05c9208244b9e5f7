"""Plankton image classifier, plain training loop."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

BATCH, SIZE = 32, 48
rng = np.random.default_rng(0)
images = rng.random((1024, SIZE, SIZE, 1), dtype="float32")
labels = rng.integers(0, 12, 1024)

model = keras.Sequential([
    layers.Input((SIZE, SIZE, 1)),
    layers.Conv2D(32, 3, activation="relu"),
    layers.Conv2D(32, 3, strides=2, activation="relu"),
    layers.Conv2D(64, 3, activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(12),
])
optimizer = keras.optimizers.Adam(1e-3)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
accuracy = keras.metrics.SparseCategoricalAccuracy()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = loss_fn(y, logits)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    accuracy.update_state(y, logits)
    return loss


history = []
for step in range(90):
    idx = rng.integers(0, len(images), BATCH)
    loss = train_step(images[idx], labels[idx])
    history.append(loss.numpy())
    print(f"step {step:3d}  loss {loss.numpy():.4f}  acc {accuracy.result().numpy():.3f}")
print("mean loss", np.mean(history[-20:]))
