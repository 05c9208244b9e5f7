"""An eager loop without `tf.function`: `GradientTape`, then `optimizer.apply_gradients`."""

import sys

import numpy as np
import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)

inputs = rng.normal(size=(4096, 32)).astype("float32")
targets = np.tanh(inputs @ rng.normal(size=(32, 4)).astype("float32"))

model = tf.keras.Sequential(
    [
        tf.keras.Input((32,)),
        tf.keras.layers.Dense(512, activation="relu"),
        tf.keras.layers.Dense(512, activation="relu"),
        tf.keras.layers.Dense(4),
    ]
)
optimizer = tf.keras.optimizers.SGD(learning_rate=0.05, momentum=0.9)
mse = tf.keras.losses.MeanSquaredError()

num_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 160
for step in range(num_steps):
    tick()
    rows = rng.choice(len(inputs), 128, replace=False)
    with tf.GradientTape() as tape:
        prediction = model(inputs[rows], training=True)
        loss = mse(targets[rows], prediction)
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 1.0)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    if (step + 1) % 20 == 0:
        print(f"Step {step + 1}/{num_steps}, loss = {float(loss):.5f}")
