"""A denoising user: a convolutional autoencoder whose widths are round in the decimal system."""

import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(17)
WIDTH = 50
frames = tf.random.uniform((8 * 20, 40, 40, 1))


class Denoiser(tf.keras.Model):
    """Predicts the noise."""

    def __init__(self):
        super().__init__()
        conv = tf.keras.layers.Conv2D
        self.body = [conv(WIDTH, 3, padding="same", activation="relu") for _ in range(4)]
        self.out = conv(1, 3, padding="same")

    def call(self, x):
        """Return the noise."""
        for layer in self.body:
            x = layer(x)
        return self.out(x)


model = Denoiser()
optimizer = tf.keras.optimizers.Adam(1e-3)


@tf.function
def train_step(clean):
    """Learn the noise of one batch."""
    noise = tf.random.normal(tf.shape(clean), stddev=0.1)
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(clean + noise) - noise) ** 2)
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    return loss


dataset = tf.data.Dataset.from_tensor_slices(frames).batch(8).prefetch(1)
for epoch in range(4):
    for batch in dataset:
        tick()
        loss = train_step(batch)
    print(f"epoch {epoch}: {loss:.5f}")
