"""A GAN user: a subclassed upsampling generator, trained in a loop to match a mean image."""

import keras
import tensorflow as tf

from stopwatch import tick

keras.utils.set_random_seed(19)


class Generator(keras.Model):
    """From noise to an image, doubling three times."""

    def __init__(self):
        super().__init__()
        self.start = keras.layers.Dense(8 * 8 * 64)
        self.convs = [keras.layers.Conv2D(c, 3, padding="same") for c in (64, 32, 32)]
        self.norms = [keras.layers.BatchNormalization() for _ in self.convs]
        self.out = keras.layers.Conv2D(3, 3, padding="same", activation="tanh")

    def call(self, noise, training=None):
        """Return images."""
        x = tf.reshape(self.start(noise), (-1, 8, 8, 64))
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = tf.repeat(tf.repeat(x, 2, axis=1), 2, axis=2)
            x = tf.nn.leaky_relu(norm(conv(x), training=training))
        return self.out(x)


generator = Generator()
optimizer = keras.optimizers.Adam(1e-4, beta_1=0.5)


@tf.function
def train_step(noise, real):
    """Come nearer to the real images."""
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((generator(noise, training=True) - real) ** 2)
    weights = generator.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
    return loss


real = tf.random.uniform((16, 64, 64, 3), -1, 1)
for step in range(80):
    tick()
    loss = train_step(tf.random.normal((16, 64)), real)
    if step % 20 == 0:
        print(f"step {step}: {loss:.4f}")
