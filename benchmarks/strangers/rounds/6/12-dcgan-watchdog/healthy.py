"""DCGAN on small rendered letters-like glyphs: keras.Model with its own train_step, two optimizers, EMA of the
generator, an evaluation callback with a feature distance at epoch ends."""
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
import keras
from keras import layers

SEED = 23
SIZE, NOISE, BATCH, EPOCHS = 32, 64, 64, 2
N = 3840
keras.utils.set_random_seed(SEED)


def glyphs():
    """Random strokes: a few thick line segments on a grid, values in [-1, 1]."""
    rng = np.random.default_rng(SEED)
    yy, xx = np.mgrid[0:SIZE, 0:SIZE].astype("float32")
    img = np.zeros((N, SIZE, SIZE), "float32")
    for _ in range(3):
        x0, y0, x1, y1 = rng.integers(1, 4, (4, N, 1, 1)) * 8.0
        dx, dy = x1 - x0, y1 - y0
        t = ((xx - x0) * dx + (yy - y0) * dy) / np.maximum(dx ** 2 + dy ** 2, 1)
        t = np.clip(t, 0, 1)
        dist = np.hypot(xx - x0 - t * dx, yy - y0 - t * dy)
        img = np.maximum(img, np.clip(2.8 - dist, 0, 1))
    return (img[..., None] * 2 - 1).astype("float32")


def generator():
    x = inp = keras.Input((NOISE,))
    x = layers.Dense(4 * 4 * 128, use_bias=False)(x)
    x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.Reshape((4, 4, 128))(x)
    for width in (96, 48):
        x = layers.Conv2DTranspose(width, 4, strides=2, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    return keras.Model(inp, layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="tanh")(x))


def discriminator():
    x = inp = keras.Input((SIZE, SIZE, 1))
    for width in (48, 96, 128):
        x = layers.Conv2D(width, 4, strides=2, padding="same")(x)
        x = layers.LeakyReLU(0.2)(x)
    return keras.Model(inp, layers.Dense(1)(layers.Dropout(0.3)(layers.Flatten()(x))))


def bce(target, logits):
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(target * tf.ones_like(logits), logits))


class GAN(keras.Model):
    def __init__(self):
        super().__init__()
        self.g, self.d = generator(), discriminator()
        self.g_ema = generator()
        self.g_ema.trainable = False
        self.g_ema.set_weights(self.g.get_weights())

    def compile(self, g_opt, d_opt):
        super().compile()
        self.g_opt, self.d_opt = g_opt, d_opt

    def train_step(self, real):
        noise = tf.random.normal((tf.shape(real)[0], NOISE))
        with tf.GradientTape() as g_tape, tf.GradientTape() as d_tape:
            fake = self.g(noise, training=True)             # one pass serves both players
            on_fake = self.d(fake, training=True)
            on_real = self.d(real, training=True)
            d_loss = bce(0.9, on_real) + bce(0.0, on_fake)
            g_loss = bce(1.0, on_fake)
        g_grads = g_tape.gradient(g_loss, self.g.trainable_variables)
        d_grads = d_tape.gradient(d_loss, self.d.trainable_variables)
        self.g_opt.apply_gradients(zip(g_grads, self.g.trainable_variables))
        self.d_opt.apply_gradients(zip(d_grads, self.d.trainable_variables))
        for slow, fast in zip(self.g_ema.weights, self.g.weights):
            slow.assign(0.99 * slow + 0.01 * tf.convert_to_tensor(fast))
        return {"g_loss": g_loss, "d_loss": d_loss}


class Evaluate(keras.callbacks.Callback):
    """Frechet distance of simple pooled image statistics, generator weights of the best epoch kept on disk."""

    def __init__(self, real, path):
        super().__init__()
        self.real, self.path, self.best = self.statistics(real), path, np.inf
        self.noise = np.random.default_rng(0).standard_normal((256, NOISE)).astype("float32")

    @staticmethod
    def statistics(images):
        pooled = images.reshape(len(images), 8, 4, 8, 4).mean((2, 4)).reshape(len(images), -1)
        return pooled.mean(0), pooled.std(0)

    def on_epoch_end(self, epoch, logs=None):
        mean, std = self.statistics(self.model.g_ema(self.noise, training=False).numpy())
        distance = float(((mean - self.real[0]) ** 2).sum() + ((std - self.real[1]) ** 2).sum())
        if distance < self.best:
            self.best = distance
            self.model.g_ema.save_weights(self.path)
        print(f"epoch {epoch + 1}: distance {distance:.3f}")


class Watchdog(keras.callbacks.Callback):
    """Stops a run that has collapsed; needs the losses of every batch."""

    def on_train_batch_end(self, batch, logs=None):
        if not np.isfinite(float(logs["g_loss"])) or float(logs["d_loss"]) < 1e-4:
            self.model.stop_training = True


def main():
    data = glyphs()
    ds = tf.data.Dataset.from_tensor_slices(data).shuffle(N, seed=SEED).batch(BATCH, drop_remainder=True)
    gan = GAN()
    gan.compile(keras.optimizers.Adam(2e-4, beta_1=0.5), keras.optimizers.Adam(2e-4, beta_1=0.5))
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "best.weights.h5")
        gan.fit(ds.prefetch(2), epochs=EPOCHS, callbacks=[Watchdog(), Evaluate(data[:1024], path)], verbose=2)


if __name__ == "__main__":
    main()
