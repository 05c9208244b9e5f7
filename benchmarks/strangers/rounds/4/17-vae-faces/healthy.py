"""Convolutional VAE for aligned face crops (made-up faces), structural-similarity reconstruction."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(1337)

IMAGE_SIZE = 32
LATENT_DIM = 48
BATCH_SIZE = 64


def draw_faces(n, size, seed=0):
    rng = np.random.default_rng(seed)
    yy, xx = np.mgrid[0:size, 0:size] / (size - 1)
    faces = np.zeros((n, size, size, 3), "float32")
    for i in range(n):
        tone = rng.uniform(0.4, 0.9) * np.array([1.0, 0.8, 0.65])
        background = rng.uniform(0, 1, 3)
        a, b = rng.uniform(0.26, 0.36), rng.uniform(0.34, 0.44)
        head = ((xx - 0.5) / a) ** 2 + ((yy - 0.5) / b) ** 2 < 1
        img = np.where(head[..., None], tone, background)
        gap = rng.uniform(0.1, 0.16)
        for side in (-1, 1):
            eye = (xx - 0.5 - side * gap) ** 2 + (yy - 0.42) ** 2 < rng.uniform(0.03, 0.05) ** 2
            img[eye] = rng.uniform(0, 0.3, 3)
        mouth = (np.abs(xx - 0.5) < rng.uniform(0.08, 0.16)) & (np.abs(yy - 0.68) < 0.03)
        img[mouth] = [0.7, 0.2, 0.25]
        faces[i] = img
    return np.clip(faces + rng.normal(0, 0.02, faces.shape), 0, 1).astype("float32")


class Sampling(layers.Layer):
    """Uses (z_mean, z_log_var) to sample z."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs):
        z_mean, z_log_var = inputs
        epsilon = keras.random.normal(keras.ops.shape(z_mean), seed=self.seed_generator)
        return z_mean + keras.ops.exp(0.5 * z_log_var) * epsilon


def build_encoder():
    inputs = keras.Input((IMAGE_SIZE, IMAGE_SIZE, 3))
    x = layers.Conv2D(8, 3, activation="relu", strides=2, padding="same")(inputs)
    x = layers.Conv2D(16, 3, activation="relu", strides=2, padding="same")(x)
    x = layers.Flatten()(x)
    x = layers.Dense(96, activation="relu")(x)
    z_mean = layers.Dense(LATENT_DIM, name="z_mean")(x)
    z_log_var = layers.Dense(LATENT_DIM, name="z_log_var")(x)
    return keras.Model(inputs, [z_mean, z_log_var, Sampling()([z_mean, z_log_var])], name="encoder")


def build_decoder():
    inputs = keras.Input((LATENT_DIM,))
    x = layers.Dense(8 * 8 * 16, activation="relu")(inputs)
    x = layers.Reshape((8, 8, 16))(x)
    x = layers.Conv2DTranspose(16, 3, activation="relu", strides=2, padding="same")(x)
    x = layers.Conv2DTranspose(8, 3, activation="relu", strides=2, padding="same")(x)
    outputs = layers.Conv2D(3, 3, activation="sigmoid", padding="same")(x)
    return keras.Model(inputs, outputs, name="decoder")


def dssim(y_true, y_pred):
    """Structural dissimilarity of every image of the batch."""
    ssim = tf.image.ssim(y_true, y_pred, max_val=1.0, filter_size=7)
    return (1.0 - ssim) / 2.0


class VAE(keras.Model):
    def __init__(self, encoder, decoder, beta=0.5, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.decoder = decoder
        self.beta = beta
        self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
        self.reconstruction_loss_tracker = keras.metrics.Mean(name="reconstruction_loss")
        self.kl_loss_tracker = keras.metrics.Mean(name="kl_loss")

    @property
    def metrics(self):
        return [self.total_loss_tracker, self.reconstruction_loss_tracker, self.kl_loss_tracker]

    def train_step(self, data):
        with tf.GradientTape() as tape:
            z_mean, z_log_var, z = self.encoder(data, training=True)
            reconstruction = self.decoder(z, training=True)
            pixel = tf.reduce_sum(tf.abs(data - reconstruction), axis=(1, 2, 3))
            structure = 500.0 * dssim(data, reconstruction)
            reconstruction_loss = tf.reduce_mean(pixel + structure)
            kl_loss = -0.5 * (1 + z_log_var - tf.square(z_mean) - tf.exp(z_log_var))
            kl_loss = tf.reduce_mean(tf.reduce_sum(kl_loss, axis=1))
            total_loss = reconstruction_loss + self.beta * kl_loss
        grads = tape.gradient(total_loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        self.total_loss_tracker.update_state(total_loss)
        self.reconstruction_loss_tracker.update_state(reconstruction_loss)
        self.kl_loss_tracker.update_state(kl_loss)
        return {m.name: m.result() for m in self.metrics}


if __name__ == "__main__":
    faces = draw_faces(1280, IMAGE_SIZE)
    vae = VAE(build_encoder(), build_decoder())
    vae.compile(optimizer=keras.optimizers.Adam(5e-4), jit_compile=False)
    vae.fit(faces, epochs=9, batch_size=BATCH_SIZE, verbose=2)

    samples = vae.decoder.predict(np.random.normal(size=(16, LATENT_DIM)), verbose=0)
    print("sample range", samples.min(), samples.max())
