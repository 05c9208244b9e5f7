"""`Model.fit` with a `train_step` of the user's own: a GAN with two optimizers."""

import keras
import tensorflow as tf
from keras import layers

from stopwatch import tick

LATENT, BATCH = 32, 32


class GAN(keras.Model):
    """A generator and a discriminator that train against each other."""

    def __init__(self, generator, discriminator):
        super().__init__()
        self.generator = generator
        self.discriminator = discriminator
        self.seeds = keras.random.SeedGenerator(7)
        self.d_loss = keras.metrics.Mean(name="d_loss")
        self.g_loss = keras.metrics.Mean(name="g_loss")

    def compile(self, d_optimizer, g_optimizer, loss_fn):
        """Take an optimizer for each of the two."""
        super().compile()
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer
        self.loss_fn = loss_fn

    @property
    def metrics(self):
        """Return what is reset each epoch."""
        return [self.d_loss, self.g_loss]

    def train_step(self, real):
        """Train the discriminator, then the generator."""
        batch = tf.shape(real)[0]
        noise = keras.random.normal((batch, LATENT), seed=self.seeds)
        fake = self.generator(noise)
        both = tf.concat([fake, real], axis=0)
        labels = tf.concat([tf.ones((batch, 1)), tf.zeros((batch, 1))], axis=0)
        with tf.GradientTape() as tape:
            d_loss = self.loss_fn(labels, self.discriminator(both))
        grads = tape.gradient(d_loss, self.discriminator.trainable_weights)
        self.d_optimizer.apply_gradients(
            zip(grads, self.discriminator.trainable_weights, strict=True)
        )

        noise = keras.random.normal((batch, LATENT), seed=self.seeds)
        with tf.GradientTape() as tape:
            guess = self.discriminator(self.generator(noise))
            g_loss = self.loss_fn(tf.zeros((batch, 1)), guess)
        grads = tape.gradient(g_loss, self.generator.trainable_weights)
        self.g_optimizer.apply_gradients(zip(grads, self.generator.trainable_weights, strict=True))
        self.d_loss.update_state(d_loss)
        self.g_loss.update_state(g_loss)
        return {"d_loss": self.d_loss.result(), "g_loss": self.g_loss.result()}


def main():
    """Train for two epochs."""
    keras.utils.set_random_seed(0)
    discriminator = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            layers.Conv2D(16, 3, strides=2, padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.Conv2D(32, 3, strides=2, padding="same"),
            layers.LeakyReLU(negative_slope=0.2),
            layers.GlobalMaxPooling2D(),
            layers.Dense(1),
        ]
    )
    generator = keras.Sequential(
        [
            keras.Input((LATENT,)),
            layers.Dense(7 * 7 * 32),
            layers.Reshape((7, 7, 32)),
            layers.Conv2DTranspose(32, 4, strides=2, padding="same", activation="relu"),
            layers.Conv2DTranspose(16, 4, strides=2, padding="same", activation="relu"),
            layers.Conv2D(1, 5, padding="same", activation="sigmoid"),
        ]
    )
    real = tf.random.stateless_uniform((90 * BATCH, 28, 28, 1), seed=(1, 2)) ** 2
    dataset = tf.data.Dataset.from_tensor_slices(real).shuffle(512, seed=1).batch(BATCH)

    gan = GAN(generator, discriminator)
    gan.compile(
        d_optimizer=keras.optimizers.Adam(3e-4),
        g_optimizer=keras.optimizers.Adam(3e-4),
        loss_fn=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    stopwatch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
    history = gan.fit(dataset, epochs=2, verbose=0, callbacks=[stopwatch])
    for epoch, losses in enumerate(zip(*history.history.values(), strict=True)):
        print(f"epoch {epoch}: d_loss {losses[0]:.4f} g_loss {losses[1]:.4f}")


if __name__ == "__main__":
    main()
