import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

NOISE = 24
BATCH = 64
EPOCHS = 20
tf.random.set_seed(1)


def make_generator():
    return tf.keras.Sequential([
        layers.Input((NOISE,)),
        layers.Dense(4 * 4 * 16), layers.BatchNormalization(), layers.LeakyReLU(),
        layers.Reshape((4, 4, 16)),
        layers.Conv2DTranspose(16, 4, strides=2, padding="same"), layers.BatchNormalization(), layers.LeakyReLU(),
        layers.Conv2DTranspose(8, 4, strides=2, padding="same"), layers.BatchNormalization(), layers.LeakyReLU(),
        layers.Conv2D(1, 3, padding="same", activation="tanh"),
    ])


def make_discriminator():
    return tf.keras.Sequential([
        layers.Input((16, 16, 1)),
        layers.Conv2D(8, 4, strides=2, padding="same"), layers.LeakyReLU(), layers.Dropout(0.2),
        layers.Conv2D(16, 4, strides=2, padding="same"), layers.LeakyReLU(), layers.Dropout(0.2),
        layers.Conv2D(16, 4, strides=2, padding="same"), layers.LeakyReLU(), layers.Dropout(0.2),
        layers.Flatten(), layers.Dense(1),
    ])


gen, disc = make_generator(), make_discriminator()
g_opt, d_opt = tf.keras.optimizers.Adam(2e-4), tf.keras.optimizers.Adam(2e-4)
bce = tf.keras.losses.BinaryCrossentropy(from_logits=True)

yy, xx = np.mgrid[:16, :16]
rng = np.random.default_rng(0)
cy, cx, rad = rng.uniform(4, 12, (3, 2560))[:, :, None, None] * np.array([1, 1, .4])[:, None, None, None]
blobs = np.where((yy - cy) ** 2 + (xx - cx) ** 2 < rad ** 2, 1.0, -1.0).astype("float32")[..., None]
dataset = tf.data.Dataset.from_tensor_slices(blobs).shuffle(2560).batch(BATCH, drop_remainder=True)


def train_epoch():
    g_mean, d_mean = tf.keras.metrics.Mean(), tf.keras.metrics.Mean()

    @tf.function
    def train_step(real):
        z = tf.random.normal((BATCH, NOISE))
        with tf.GradientTape() as gt, tf.GradientTape() as dt:
            fake = gen(z, training=True)
            d_real = disc(real, training=True)
            d_fake = disc(fake, training=True)
            g_loss = bce(tf.ones_like(d_fake), d_fake)
            d_loss = bce(tf.ones_like(d_real), d_real) + bce(tf.zeros_like(d_fake), d_fake)
        g_opt.apply_gradients(zip(gt.gradient(g_loss, gen.trainable_variables), gen.trainable_variables))
        d_opt.apply_gradients(zip(dt.gradient(d_loss, disc.trainable_variables), disc.trainable_variables))
        return g_loss, d_loss

    for real in dataset:
        g, d = train_step(real)
        g_mean.update_state(g)
        d_mean.update_state(d)
    return float(g_mean.result()), float(d_mean.result())


g_opt.build(gen.trainable_variables)
d_opt.build(disc.trainable_variables)
for epoch in range(EPOCHS):
    g, d = train_epoch()
    print(f"epoch {epoch + 1}/{EPOCHS}  gen {g:.3f}  disc {d:.3f}")
