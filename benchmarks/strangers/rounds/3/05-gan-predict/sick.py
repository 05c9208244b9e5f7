import numpy as np
from keras import Sequential, layers, optimizers

latent_dim = 64
batch_size = 32
iterations = 90
np.random.seed(0)
X_train = np.random.uniform(-1, 1, (2000, 28, 28, 1)).astype("float32")


def build_generator():
    return Sequential(
        [
            layers.Input((latent_dim,)),
            layers.Dense(7 * 7 * 32),
            layers.LeakyReLU(0.2),
            layers.Reshape((7, 7, 32)),
            layers.Conv2DTranspose(32, 4, strides=2, padding="same"),
            layers.LeakyReLU(0.2),
            layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="tanh"),
        ]
    )


def build_discriminator():
    return Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(32, 3, strides=2, padding="same"),
            layers.LeakyReLU(0.2),
            layers.Conv2D(32, 3, strides=2, padding="same"),
            layers.LeakyReLU(0.2),
            layers.Flatten(),
            layers.Dense(1, activation="sigmoid"),
        ]
    )


generator = build_generator()
discriminator = build_discriminator()
discriminator.compile(loss="binary_crossentropy", optimizer=optimizers.Adam(2e-4, 0.5))

frozen = build_discriminator()
frozen.trainable = False
gan = Sequential([layers.Input((latent_dim,)), generator, frozen])
gan.compile(loss="binary_crossentropy", optimizer=optimizers.Adam(2e-4, 0.5))

valid = np.ones((batch_size, 1))
fake = np.zeros((batch_size, 1))
for i in range(iterations):
    idx = np.random.randint(0, len(X_train), batch_size)
    noise = np.random.normal(0, 1, (batch_size, latent_dim))
    gen_imgs = generator.predict(noise, verbose=0)
    x = np.concatenate([X_train[idx], gen_imgs])
    d_loss = discriminator.train_on_batch(x, np.concatenate([valid, fake]))
    for target, source in zip(frozen.weights, discriminator.weights):
        target.assign(source)
    g_loss = gan.train_on_batch(noise, valid)
    if i % 30 == 0:
        print(i, d_loss, g_loss)
