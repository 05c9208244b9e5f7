"""An image user: a VGG-like network without normalization, in a loop of their own."""

import keras
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(14)
keras.mixed_precision.set_global_policy("mixed_bfloat16")
images = tf.random.normal((16 * 20, 64, 64, 3))
labels = tf.range(len(images)) % 8

inputs = keras.Input((64, 64, 3))
x = inputs
for filters in (32, 64, 64):
    x = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    x = keras.layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    x = keras.layers.MaxPooling2D()(x)
x = keras.layers.GlobalAveragePooling2D()(x)
model = keras.Model(inputs, keras.layers.Dense(8, dtype="float32")(x))
optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    """Take one step."""
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    optimizer.apply_gradients(
        zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
    )
    return loss


dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(16).prefetch(2)
for epoch in range(3):
    for x, y in dataset:
        tick()
        loss = train_step(x, y)
    print(f"epoch {epoch}: {loss:.4f}")
