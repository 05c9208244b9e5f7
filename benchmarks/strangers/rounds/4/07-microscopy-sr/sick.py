"""Super-resolution of widefield fluorescence microscopy (x2) with a data consistency term.

The network output, blurred with the PSF of the microscope and binned, must agree with what
the camera has seen.
"""
import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(3)


class Settings:
    patch = 64
    scale = 2
    psf_sigma = 3.5
    psf_size = 27
    channels = 2
    features = 16
    batch = 8
    patches = 160
    epochs = 30
    consistency = 0.5


def gaussian(size, sigma):
    x = np.arange(size) - size // 2
    g = np.exp(-(x ** 2) / (2 * sigma ** 2))
    return (g / g.sum()).astype("float32")


class Microscope(layers.Layer):
    """Forward model: PSF blur of each channel, then binning on the camera."""

    def __init__(self, size, sigma, channels, scale, **kwargs):
        super().__init__(trainable=False, **kwargs)
        g = gaussian(size, sigma)
        psf = np.outer(g, g)[:, :, None, None]
        self.psf = tf.constant(np.tile(psf, (1, 1, channels, 1)))
        self.scale = scale

    def call(self, x):
        x = tf.nn.depthwise_conv2d(x, self.psf, [1, 1, 1, 1], "SAME")
        return tf.nn.avg_pool2d(x, self.scale, self.scale, "VALID")


def residual_block(x, features):
    y = layers.Conv2D(features, 3, padding="same", activation="relu")(x)
    y = layers.Conv2D(features, 3, padding="same")(y)
    return layers.Add()([x, y])


def build_generator(s):
    inputs = keras.Input((s.patch // s.scale, s.patch // s.scale, s.channels))
    x = head = layers.Conv2D(s.features, 3, padding="same")(inputs)
    for _ in range(3):
        x = residual_block(x, s.features)
    x = layers.Add()([x, head])
    x = layers.Conv2D(s.channels * s.scale ** 2, 3, padding="same")(x)
    outputs = layers.Lambda(lambda t: tf.nn.depth_to_space(t, s.scale))(x)
    return keras.Model(inputs, outputs, name="generator")


class SuperResolution(keras.Model):
    def __init__(self, settings):
        super().__init__()
        self.generator = build_generator(settings)
        self.microscope = Microscope(settings.psf_size, settings.psf_sigma, settings.channels,
                                     settings.scale)
        self.weight = settings.consistency
        self.loss_metric = keras.metrics.Mean(name="loss")
        self.psnr_metric = keras.metrics.Mean(name="psnr")

    @property
    def metrics(self):
        return [self.loss_metric, self.psnr_metric]

    def call(self, x, training=False):
        return self.generator(x, training=training)

    def train_step(self, data):
        low, high = data
        with tf.GradientTape() as tape:
            fake = self.generator(low, training=True)
            pixel = tf.reduce_mean(tf.abs(fake - high))
            consistency = tf.reduce_mean(tf.square(self.microscope(fake) - low))
            loss = pixel + self.weight * consistency
        variables = self.generator.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        self.loss_metric.update_state(loss)
        self.psnr_metric.update_state(tf.image.psnr(fake, high, max_val=1.0))
        return {m.name: m.result() for m in self.metrics}


def synthetic_cells(s):
    """Filaments and spots in two colours."""
    rng = np.random.default_rng(8)
    images = np.zeros((s.patches, s.patch, s.patch, s.channels), "float32")
    for image in images:
        for _ in range(6):
            t = np.linspace(0, 1, 120)
            y = rng.uniform(0, s.patch) + 25 * rng.normal() * t + 8 * np.sin(7 * t)
            x = rng.uniform(0, s.patch) + 40 * rng.normal() * t
            image[y.astype(int) % s.patch, x.astype(int) % s.patch, 0] = rng.uniform(0.5, 1)
        spots = rng.integers(0, s.patch, (25, 2))
        image[spots[:, 0], spots[:, 1], 1] = rng.uniform(0.3, 1, 25)
    return images


def main():
    s = Settings()
    high = synthetic_cells(s)
    camera = Microscope(s.psf_size, s.psf_sigma, s.channels, s.scale)
    low = np.concatenate([camera(high[i:i + 16]).numpy() for i in range(0, len(high), 16)])
    low += np.random.normal(0, 0.01, low.shape).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((low, high)).shuffle(len(high))
    dataset = dataset.batch(s.batch, drop_remainder=True).prefetch(2)

    model = SuperResolution(s)
    model.compile(optimizer=keras.optimizers.Adam(1e-3))
    model.fit(dataset, epochs=s.epochs, verbose=2)


if __name__ == "__main__":
    main()
