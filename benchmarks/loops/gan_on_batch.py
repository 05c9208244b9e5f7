"""The old Keras way of a GAN: `discriminator.train_on_batch` twice, then `combined.train_on_batch`."""

import numpy as np
from keras import Input, Model, Sequential, layers, optimizers, utils

from stopwatch import tick


class GAN:
    """A generator, a discriminator, and both in a row."""

    def __init__(self):
        self.img_shape = (28, 28, 1)
        self.latent_dim = 100
        self.discriminator = self.build_discriminator()
        self.discriminator.compile(
            loss="binary_crossentropy", optimizer=optimizers.Adam(0.0002, 0.5), metrics=["accuracy"]
        )
        self.generator = self.build_generator()
        z = Input(shape=(self.latent_dim,))
        img = self.generator(z)
        self.discriminator.trainable = False
        self.combined = Model(z, self.discriminator(img))
        self.combined.compile(loss="binary_crossentropy", optimizer=optimizers.Adam(0.0002, 0.5))

    def build_generator(self):
        """Return a network from noise to an image."""
        model = Sequential([Input((self.latent_dim,))])
        for width in (256, 512, 1024):
            model.add(layers.Dense(width))
            model.add(layers.LeakyReLU(negative_slope=0.2))
            model.add(layers.BatchNormalization(momentum=0.8))
        model.add(layers.Dense(int(np.prod(self.img_shape)), activation="tanh"))
        model.add(layers.Reshape(self.img_shape))
        return model

    def build_discriminator(self):
        """Return a network from an image to a verdict."""
        return Sequential(
            [
                Input(self.img_shape),
                layers.Flatten(),
                layers.Dense(512),
                layers.LeakyReLU(negative_slope=0.2),
                layers.Dense(256),
                layers.LeakyReLU(negative_slope=0.2),
                layers.Dense(1, activation="sigmoid"),
            ]
        )

    def train(self, images, epochs, batch_size, print_every):
        """Alternate between the two."""
        valid, fake = np.ones((batch_size, 1)), np.zeros((batch_size, 1))
        rng = np.random.default_rng(11)
        for epoch in range(epochs):
            tick()
            idx = rng.integers(0, images.shape[0], batch_size)
            noise = rng.normal(0, 1, (batch_size, self.latent_dim))
            gen_imgs = self.generator.predict_on_batch(noise)
            d_loss_real = self.discriminator.train_on_batch(images[idx], valid)
            d_loss_fake = self.discriminator.train_on_batch(gen_imgs, fake)
            d_loss = 0.5 * np.add(d_loss_real, d_loss_fake)

            noise = rng.normal(0, 1, (batch_size, self.latent_dim))
            g_loss = self.combined.train_on_batch(noise, valid)
            if epoch % print_every == 0:
                print(f"{epoch} [D loss: {d_loss[0]:.3f}] [G loss: {np.mean(g_loss):.3f}]")


if __name__ == "__main__":
    utils.set_random_seed(11)
    digits = np.random.default_rng(0).uniform(-1, 1, (2048, 28, 28, 1)).astype("float32")
    GAN().train(digits, epochs=100, batch_size=32, print_every=20)
