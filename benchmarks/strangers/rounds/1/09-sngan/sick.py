"""GAN on sensor vectors with a Lipschitz critic."""
import keras
import numpy as np
import tensorflow as tf

DIM, LATENT, BATCH = 96, 24, 64
rng = np.random.default_rng(0)
data = (rng.normal(size=(6400, 16)) @ rng.normal(size=(16, DIM)) / 4).astype("float32")


class SNDense(keras.layers.Layer):
    """Dense layer whose kernel is divided by its largest singular value."""

    def __init__(self, units, activation=None):
        super().__init__()
        self.units = units
        self.activation = keras.activations.get(activation)

    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], self.units), name="w")
        self.b = self.add_weight(shape=(self.units,), initializer="zeros", name="b")

    def call(self, x):
        sigma = tf.linalg.svd(self.w, compute_uv=False)[0]
        return self.activation(x @ (self.w / sigma) + self.b)


class GAN(keras.Model):
    def __init__(self):
        super().__init__()
        self.generator = keras.Sequential([
            keras.layers.Input((LATENT,)),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(DIM),
        ])
        self.critic = keras.Sequential([
            keras.layers.Input((DIM,)),
            SNDense(96, "leaky_relu"),
            SNDense(96, "leaky_relu"),
            SNDense(1),
        ])

    def compile(self, d_opt, g_opt):
        super().compile()
        self.d_opt, self.g_opt = d_opt, g_opt

    def train_step(self, real):
        z = tf.random.normal((BATCH, LATENT))
        with tf.GradientTape() as tape:
            fake = self.generator(z, training=True)
            scores = self.critic(tf.concat([real, fake], axis=0), training=True)
            d_loss = tf.reduce_mean(tf.nn.relu(1 - scores[:BATCH])) + tf.reduce_mean(tf.nn.relu(1 + scores[BATCH:]))
        grads = tape.gradient(d_loss, self.critic.trainable_variables)
        self.d_opt.apply_gradients(zip(grads, self.critic.trainable_variables))
        z = tf.random.normal((BATCH, LATENT))
        with tf.GradientTape() as tape:
            g_loss = -tf.reduce_mean(self.critic(self.generator(z, training=True), training=True))
        grads = tape.gradient(g_loss, self.generator.trainable_variables)
        self.g_opt.apply_gradients(zip(grads, self.generator.trainable_variables))
        return {"d_loss": d_loss, "g_loss": g_loss}


gan = GAN()
gan.compile(keras.optimizers.Adam(2e-4, beta_1=0.5), keras.optimizers.Adam(1e-4, beta_1=0.5))
ds = tf.data.Dataset.from_tensor_slices(data).shuffle(6400).batch(BATCH, drop_remainder=True).prefetch(2)
gan.fit(ds, epochs=1, verbose=2)
