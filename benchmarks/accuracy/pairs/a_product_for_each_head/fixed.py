"""A language user: attention with a projection of its own for each head."""

import tensorflow as tf

from stopwatch import tick

HEADS, WIDTH, LENGTH, BATCH = 8, 128, 32, 16
tf.keras.utils.set_random_seed(24)
dense = tf.keras.layers.Dense


class Attention(tf.keras.layers.Layer):
    """Self-attention."""

    def __init__(self):
        super().__init__()
        self.parts = [dense(WIDTH) for _ in range(3)]
        self.out = dense(WIDTH)

    def call(self, x):
        """Mix the positions."""
        q, k, v = (self.heads(part(x)) for part in self.parts)
        weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 4.0)
        mixed = tf.transpose(tf.matmul(weights, v), (0, 2, 1, 3))
        return x + self.out(tf.reshape(mixed, (BATCH, LENGTH, WIDTH)))

    def heads(self, x):
        """Part the last axis into heads."""
        x = tf.reshape(x, (BATCH, LENGTH, HEADS, WIDTH // HEADS))
        return tf.transpose(x, (0, 2, 1, 3))


model = tf.keras.Sequential([Attention(), Attention(), dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)


@tf.function
def train_step(x):
    """Predict the next position's first value."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x)[:, :-1, 0] - x[:, 1:, 0]) ** 2)
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    return loss


data = tf.data.Dataset.from_tensors(tf.random.normal((BATCH, LENGTH, WIDTH))).repeat(150)
for step, x in enumerate(data):
    tick()
    loss = train_step(x)
    if step % 50 == 0:
        print(f"{step}: {loss:.4f}")
