"""A custom loop under `MirroredStrategy`: a distributed dataset on two virtual CPU devices."""

import tensorflow as tf

from stopwatch import tick

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(
    cpus[0], [tf.config.LogicalDeviceConfiguration(), tf.config.LogicalDeviceConfiguration()]
)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
print("Number of devices:", strategy.num_replicas_in_sync)

PER_REPLICA, EPOCHS, STEPS = 24, 2, 60
GLOBAL = PER_REPLICA * strategy.num_replicas_in_sync

tf.keras.utils.set_random_seed(8)
x = tf.random.stateless_uniform((STEPS * GLOBAL, 28, 28, 1), seed=(8, 0))
y = tf.cast(tf.reduce_max(x[:, :2], axis=(1, 2, 3)) * 1e3, tf.int32) % 10
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(GLOBAL)
dist_dataset = strategy.experimental_distribute_dataset(dataset)

with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            tf.keras.layers.Conv2D(16, 3, activation="relu"),
            tf.keras.layers.MaxPooling2D(),
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(10),
        ]
    )
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


def compute_loss(labels, predictions):
    """Return the mean over the global batch."""
    return tf.nn.compute_average_loss(loss_object(labels, predictions), global_batch_size=GLOBAL)


def train_step(inputs):
    """Take a step on one replica."""
    images, labels = inputs
    with tf.GradientTape() as tape:
        loss = compute_loss(labels, model(images, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def distributed_train_step(inputs):
    """Take a step on all replicas."""
    losses = strategy.run(train_step, args=(inputs,))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


for epoch in range(EPOCHS):
    total_loss = 0.0
    num_batches = 0
    for inputs in dist_dataset:
        tick()
        total_loss += distributed_train_step(inputs)
        num_batches += 1
    print(f"Epoch {epoch + 1}, Loss: {total_loss / num_batches:.4f}")
