from __future__ import print_function, division

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

from tensorflow.keras.layers import Input, Dense, Reshape, Flatten, Dropout, Multiply
from tensorflow.keras.layers import BatchNormalization, Embedding, LeakyReLU
from tensorflow.keras.models import Sequential, Model
from tensorflow.keras.optimizers import Adam
from tensorflow.keras.utils import set_random_seed

import numpy as np


def load_shapes(n=4000, size=24, seed=0):
    """Squares, discs, crosses, rings ... in {-1, 1}, label = kind of shape."""
    rng = np.random.RandomState(seed)
    yy, xx = np.mgrid[0:size, 0:size]
    X = np.full((n, size, size, 1), -1.0, "float32")
    y = rng.randint(0, 5, n)
    for i in range(n):
        cy, cx = rng.uniform(9, 15, 2)
        r = rng.uniform(4, 8)
        dy, dx = np.abs(yy - cy), np.abs(xx - cx)
        d = np.hypot(dy, dx)
        mask = [
            np.maximum(dy, dx) < r,
            d < r,
            (np.minimum(dy, dx) < 2) & (np.maximum(dy, dx) < r),
            np.abs(d - r) < 1.5,
            dy + dx < r,
        ][y[i]]
        X[i, mask, 0] = 1.0
    return X, y.reshape(-1, 1)


class CGAN():
    def __init__(self):
        # Input shape
        self.img_rows = 24
        self.img_cols = 24
        self.channels = 1
        self.img_shape = (self.img_rows, self.img_cols, self.channels)
        self.num_classes = 5
        self.latent_dim = 100

        # Build and compile the discriminator
        self.discriminator = self.build_discriminator()
        self.discriminator.compile(loss='binary_crossentropy', optimizer=Adam(0.0002, 0.5))

        # Build the generator
        self.generator = self.build_generator()

        # The generator takes noise and the target label as input
        noise = Input(shape=(self.latent_dim,))
        label = Input(shape=(1,), dtype='int32')
        img = self.generator([noise, label])

        # For the combined model we will only train the generator
        self.discriminator.trainable = False
        valid = self.discriminator([img, label])
        self.combined = Model([noise, label], valid)
        self.combined.compile(loss='binary_crossentropy', optimizer=Adam(0.0002, 0.5))

    def build_generator(self):
        model = Sequential(name='generator_body')
        model.add(Dense(256))
        model.add(LeakyReLU(negative_slope=0.2))
        model.add(BatchNormalization(momentum=0.8))
        model.add(Dense(512))
        model.add(LeakyReLU(negative_slope=0.2))
        model.add(BatchNormalization(momentum=0.8))
        model.add(Dense(int(np.prod(self.img_shape)), activation='tanh'))
        model.add(Reshape(self.img_shape))

        noise = Input(shape=(self.latent_dim,))
        label = Input(shape=(1,), dtype='int32')
        label_embedding = Flatten()(Embedding(self.num_classes, self.latent_dim)(label))
        model_input = Multiply()([noise, label_embedding])
        return Model([noise, label], model(model_input))

    def build_discriminator(self):
        model = Sequential(name='discriminator_body')
        model.add(Dense(384))
        model.add(LeakyReLU(negative_slope=0.2))
        model.add(Dense(256))
        model.add(LeakyReLU(negative_slope=0.2))
        model.add(Dropout(0.4))
        model.add(Dense(1, activation='sigmoid'))

        img = Input(shape=self.img_shape)
        label = Input(shape=(1,), dtype='int32')
        label_embedding = Flatten()(Embedding(self.num_classes, int(np.prod(self.img_shape)))(label))
        model_input = Multiply()([Flatten()(img), label_embedding])
        return Model([img, label], model(model_input))

    def train(self, epochs, batch_size=64, sample_interval=50):
        X_train, y_train = load_shapes()

        # Adversarial ground truths
        valid = np.ones((batch_size, 1))
        fake = np.zeros((batch_size, 1))

        for epoch in range(epochs):
            # ---------------------
            #  Train Discriminator
            # ---------------------
            idx = np.random.randint(0, X_train.shape[0], batch_size)
            imgs, labels = X_train[idx], y_train[idx]
            noise = np.random.normal(0, 1, (batch_size, self.latent_dim)).astype('float32')

            # Generate a batch of new images
            gen_imgs = self.generator.predict([noise, labels], verbose=0)

            d_loss_real = self.discriminator.train_on_batch([imgs, labels], valid)
            d_loss_fake = self.discriminator.train_on_batch([gen_imgs, labels], fake)
            d_loss = 0.5 * np.add(d_loss_real, d_loss_fake)

            # ---------------------
            #  Train Generator
            # ---------------------
            sampled_labels = np.random.randint(0, self.num_classes, batch_size).reshape(-1, 1)
            g_loss = self.combined.train_on_batch([noise, sampled_labels], valid)

            if epoch % sample_interval == 0:
                print("%d [D loss: %f] [G loss: %f]" % (epoch, np.mean(d_loss), np.mean(g_loss)))


if __name__ == '__main__':
    set_random_seed(3)
    cgan = CGAN()
    cgan.train(epochs=220, batch_size=64)
