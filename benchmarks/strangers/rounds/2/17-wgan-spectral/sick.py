"""Spectrally normalised GAN for 16x16 texture patches."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

SIZE, Z, BATCH, STEPS = 16, 32, 24, 66
rng = np.random.default_rng(0)
tf.keras.utils.set_random_seed(0)
yy, xx = np.mgrid[:SIZE, :SIZE]
angle, freq = rng.uniform(0, 3.14, (2, 1024, 1, 1))
real = np.cos((freq + 0.3) * (np.cos(angle) * xx + np.sin(angle) * yy)).astype("float32")[..., None]


class SNWrapper(layers.Wrapper):
    def build(self, shape):
        self.layer.build(shape)
        self.kernel = self.layer.kernel
        super().build(shape)

    def normalized(self):
        mat = tf.reshape(self.kernel, [-1, self.kernel.shape[-1]])
        sigma = tf.linalg.svd(mat, compute_uv=False)[0]
        return self.kernel / sigma

    def call(self, x):
        w = self.normalized()
        if isinstance(self.layer, layers.Conv2D):
            return tf.nn.conv2d(x, w, self.layer.strides, "SAME") + self.layer.bias
        return tf.matmul(x, w) + self.layer.bias


critic = tf.keras.Sequential([
    tf.keras.Input((SIZE, SIZE, 1)),
    SNWrapper(layers.Conv2D(32, 3, strides=2)), layers.LeakyReLU(0.2),
    SNWrapper(layers.Conv2D(64, 3, strides=2)), layers.LeakyReLU(0.2),
    SNWrapper(layers.Conv2D(64, 3, strides=1)), layers.LeakyReLU(0.2),
    layers.Flatten(), SNWrapper(layers.Dense(1)),
])
generator = tf.keras.Sequential([
    tf.keras.Input((Z,)),
    layers.Dense(4 * 4 * 64, activation="relu"), layers.Reshape((4, 4, 64)),
    layers.UpSampling2D(), layers.Conv2D(32, 3, padding="same", activation="relu"),
    layers.UpSampling2D(), layers.Conv2D(1, 3, padding="same", activation="tanh"),
])
g_opt, c_opt = tf.keras.optimizers.Adam(2e-4, 0.5), tf.keras.optimizers.Adam(2e-4, 0.5)


@tf.function
def train_step(images):
    z = tf.random.normal((BATCH, Z))
    with tf.GradientTape() as tape:
        score = critic(tf.concat([images, generator(z, training=True)], 0), training=True)
        r, f = tf.split(score, 2)
        c_loss = tf.reduce_mean(tf.nn.relu(1 - r)) + tf.reduce_mean(tf.nn.relu(1 + f))
    c_opt.apply_gradients(zip(tape.gradient(c_loss, critic.trainable_variables), critic.trainable_variables))
    with tf.GradientTape() as tape:
        g_loss = -tf.reduce_mean(critic(generator(z, training=True), training=True))
    g_opt.apply_gradients(zip(tape.gradient(g_loss, generator.trainable_variables), generator.trainable_variables))
    return c_loss, g_loss


ds = tf.data.Dataset.from_tensor_slices(real).shuffle(1024).batch(BATCH, drop_remainder=True).repeat().prefetch(2)
for i, batch in enumerate(ds.take(STEPS)):
    c_loss, g_loss = train_step(batch)
    if i % 20 == 0:
        print(f"{i:4d} critic {float(c_loss):.3f} generator {float(g_loss):.3f}")
