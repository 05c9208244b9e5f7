"""BYOL (bootstrap your own latent) on small unlabelled images."""
import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(21)

IMG = 24
BATCH = 16
N_IMAGES = 1600
EPOCHS = 3
PROJ = 128


def texture_images(n):
    """Coloured gratings and blobs of ten kinds."""
    rng = np.random.default_rng(6)
    yy, xx = np.mgrid[0:IMG, 0:IMG] / IMG
    kind = rng.integers(0, 10, n)
    angle = kind * np.pi / 10 + rng.normal(0, 0.1, n)
    freq = 2 + kind % 3 * 2
    phase = rng.uniform(0, 6.28, n)
    wave = (np.cos(angle)[:, None, None] * xx + np.sin(angle)[:, None, None] * yy)
    gray = 0.5 + 0.4 * np.sin(6.28 * freq[:, None, None] * wave + phase[:, None, None])
    tint = rng.uniform(0.4, 1, (n, 1, 1, 3))
    return np.clip(gray[..., None] * tint + rng.normal(0, 0.05, (n, IMG, IMG, 3)), 0, 1)


def augment(images):
    n = tf.shape(images)[0]
    padded = tf.pad(images, [[0, 0], [4, 4], [4, 4], [0, 0]], mode="REFLECT")
    views = tf.image.random_crop(padded, (n, IMG, IMG, 3))
    flip = tf.random.uniform((n, 1, 1, 1)) < 0.5
    views = tf.where(flip, views[:, :, ::-1], views)
    gain = tf.random.uniform((n, 1, 1, 3), 0.6, 1.4)
    shift = tf.random.uniform((n, 1, 1, 1), -0.2, 0.2)
    return tf.clip_by_value(views * gain + shift, 0.0, 1.0)


def two_views(images):
    return augment(images), augment(images)


def basic_block(x, filters, stride):
    shortcut = x
    y = layers.Conv2D(filters, 3, stride, padding="same", use_bias=False)(x)
    y = layers.BatchNormalization()(y)
    y = layers.ReLU()(y)
    y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(y)
    y = layers.BatchNormalization()(y)
    if stride > 1:
        shortcut = layers.Conv2D(filters, 1, stride, use_bias=False)(x)
        shortcut = layers.BatchNormalization()(shortcut)
    return layers.ReLU()(layers.Add()([y, shortcut]))


def mlp(dim_in, hidden, dim_out):
    return keras.Sequential([
        keras.Input((dim_in,)), layers.Dense(hidden), layers.BatchNormalization(),
        layers.ReLU(), layers.Dense(dim_out)])


def build_encoder():
    inputs = keras.Input((IMG, IMG, 3))
    x = layers.Conv2D(8, 3, strides=2, padding="same")(inputs)
    for filters, stride in ((8, 1), (16, 2), (32, 2), (64, 2), (64, 1)):
        x = basic_block(x, filters, stride)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, mlp(64, 512, PROJ)(x))


class BYOL:
    def __init__(self, momentum=0.99):
        self.online = build_encoder()
        self.target = build_encoder()
        self.target.set_weights(self.online.get_weights())
        self.predictor = mlp(PROJ, 512, PROJ)
        self.optimizer = keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True)
        self.momentum = momentum

    @staticmethod
    def regression_loss(p, z):
        p = tf.math.l2_normalize(p, axis=1)
        z = tf.math.l2_normalize(z, axis=1)
        return 2.0 - 2.0 * tf.reduce_mean(tf.reduce_sum(p * z, axis=1))

    @tf.function
    def train_step(self, v1, v2):
        z1, z2 = self.target(v1, training=True), self.target(v2, training=True)
        variables = self.online.trainable_variables + self.predictor.trainable_variables
        with tf.GradientTape() as tape:
            p1 = self.predictor(self.online(v1, training=True), training=True)
            p2 = self.predictor(self.online(v2, training=True), training=True)
            loss = self.regression_loss(p1, tf.stop_gradient(z2))
            loss += self.regression_loss(p2, tf.stop_gradient(z1))
        grads = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(grads, variables))
        return loss

    @tf.function
    def update_target(self):
        m = self.momentum
        for t, o in zip(self.target.variables, self.online.variables):
            if t.dtype == o.dtype == "float32":
                t.assign(m * t + (1 - m) * o)

    def fit(self, dataset, epochs):
        for epoch in range(epochs):
            total, n = 0.0, 0
            for v1, v2 in dataset:
                total += self.train_step(v1, v2)
                self.update_target()
                n += 1
            print(f"epoch {epoch}: loss {float(total) / n:.4f}")


def main():
    images = texture_images(N_IMAGES).astype("float32")
    dataset = (tf.data.Dataset.from_tensor_slices(images)
               .shuffle(N_IMAGES).batch(BATCH, drop_remainder=True)
               .map(two_views, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE))
    BYOL().fit(dataset, EPOCHS)


if __name__ == "__main__":
    main()
