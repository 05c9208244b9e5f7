"""Convolutional beta-VAE on rendered sprites with a cyclical KL weight; Keras model, own training loop,
log line at every step, checkpoint and a grid of samples at the end of an epoch."""
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
import keras
from keras import layers

from anneal import CyclicalBeta, RunLog

SEED = 13
SIZE, LATENT, BATCH, EPOCHS = 32, 16, 64, 3
N = 4096
keras.utils.set_random_seed(SEED)


def sprites():
    """Anti-aliased discs and squares of random size, place and shade."""
    rng = np.random.default_rng(SEED)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype("float32")
    cx, cy = rng.uniform(8, 24, (2, N, 1, 1))
    r = rng.uniform(3, 9, (N, 1, 1))
    disc = np.clip(r - np.hypot(xx - cx, yy - cy) + 0.5, 0, 1)
    square = np.clip(r - np.maximum(abs(xx - cx), abs(yy - cy)) + 0.5, 0, 1)
    kind = rng.random((N, 1, 1)) < 0.5
    img = np.where(kind, disc, square) * rng.uniform(0.5, 1.0, (N, 1, 1))
    return img[..., None].astype("float32")


def encoder():
    x = inp = keras.Input((SIZE, SIZE, 1))
    for width in (32, 64, 64):
        x = layers.Conv2D(width, 4, strides=2, padding="same", activation="relu")(x)
    x = layers.Dense(128, activation="relu")(layers.Flatten()(x))
    return keras.Model(inp, layers.Dense(2 * LATENT)(x), name="encoder")


def decoder():
    x = inp = keras.Input((LATENT,))
    x = layers.Dense(4 * 4 * 64, activation="relu")(x)
    x = layers.Reshape((4, 4, 64))(x)
    for width in (64, 32):
        x = layers.Conv2DTranspose(width, 4, strides=2, padding="same", activation="relu")(x)
    return keras.Model(inp, layers.Conv2DTranspose(1, 4, strides=2, padding="same")(x), name="decoder")


class Trainer(tf.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = encoder(), decoder()
        self.opt = keras.optimizers.Adam(1e-3)
        self.vars = self.enc.trainable_variables + self.dec.trainable_variables
        self.opt.build(self.vars)
        self.beta = tf.Variable(0.0, trainable=False)

    @tf.function(reduce_retracing=True)
    def step(self, x):
        with tf.GradientTape() as tape:
            mu, log_var = tf.split(self.enc(x, training=True), 2, axis=1)
            z = mu + tf.exp(0.5 * log_var) * tf.random.normal(tf.shape(mu))
            logits = self.dec(z, training=True)
            bce = tf.nn.sigmoid_cross_entropy_with_logits(x, logits)
            rec = tf.reduce_mean(tf.reduce_sum(bce, axis=[1, 2, 3]))
            kl = 0.5 * tf.reduce_mean(tf.reduce_sum(tf.exp(log_var) + mu ** 2 - 1.0 - log_var, axis=1))
            loss = rec + self.beta * kl
        self.opt.apply_gradients(zip(tape.gradient(loss, self.vars), self.vars))
        return rec, kl

    @tf.function
    def sample(self, z):
        return tf.sigmoid(self.dec(z, training=False))


def save_grid(images, path, rows=6):
    grid = np.concatenate([np.concatenate(list(r), axis=1) for r in images.reshape(rows, -1, SIZE, SIZE, 1)])
    tf.io.write_file(path, tf.io.encode_png(tf.cast(grid * 255, tf.uint8)))


def main():
    data = sprites()
    rng = np.random.default_rng(SEED)
    trainer = Trainer()
    fixed = tf.random.stateless_normal((36, LATENT), seed=(1, 2))
    with tempfile.TemporaryDirectory() as out:
        log = RunLog(os.path.join(out, "log.csv"), ["step", "beta", "rec", "kl"])
        schedule = CyclicalBeta(trainer.beta, period=64)
        manager = tf.train.CheckpointManager(
            tf.train.Checkpoint(enc=trainer.enc, dec=trainer.dec), out, max_to_keep=1)
        step = 0
        for epoch in range(EPOCHS):
            order = rng.permutation(N)
            for start in range(0, N, BATCH):
                schedule.set_for(step)
                batch = data[order[start:start + BATCH]]
                rec, kl = trainer.step(tf.constant(batch))
                log.row(step=step, beta=trainer.beta, rec=rec, kl=kl)
                step += 1
            save_grid(trainer.sample(fixed).numpy(), os.path.join(out, f"epoch{epoch}.png"))
            manager.save()
            print(f"epoch {epoch}: rec {float(rec):.2f} kl {float(kl):.2f} beta {float(trainer.beta):.2f}")


if __name__ == "__main__":
    main()
