"""A custom loop over a dataset around a tf.function with a Keras optimizer."""

import keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
x = rng.normal(size=(16000, 32)).astype("float32")
y = rng.integers(0, 4, 16000)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32).prefetch(2)

model = keras.Sequential(
    [keras.Input((32,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(4)]
)
optimizer = keras.optimizers.SGD(0.01)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(1):
    for batch in data:
        loss = train(*batch)
