"""GP-prior variational autoencoder for equally spaced sensor series (TensorFlow Probability, custom loop).

Each latent channel follows a Gaussian process over time; the encoder is a diagonal Gaussian, so that the ELBO's
KL part is estimated from a sample: log q(z|x) - log p(z)."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
import tf_keras
import tensorflow_probability as tfp

tfd, tfk = tfp.distributions, tf_keras
SEED = 17
T, SENSORS, LATENT = 800, 12, 8
BATCH, EPOCHS = 16, 3
N_SERIES = 960
LR = 1e-3

tf_keras.utils.set_random_seed(SEED)


def make_series():
    rng = np.random.default_rng(SEED)
    t = np.linspace(0, 1, T)
    freq = rng.uniform(2, 9, (N_SERIES, 3, 1))
    phase = rng.uniform(0, 2 * np.pi, (N_SERIES, 3, 1))
    latent = np.sin(2 * np.pi * freq * t + phase)                      # (N, 3, T)
    mix = rng.normal(0, 0.8, (3, SENSORS))
    x = np.einsum("nkt,ks->nts", latent, mix) + rng.normal(0, 0.15, (N_SERIES, T, SENSORS))
    return x.astype("float32")


def encoder():
    return tfk.Sequential([
        tfk.layers.Conv1D(32, 7, padding="same", activation="elu"),
        tfk.layers.Conv1D(32, 5, padding="same", activation="elu"),
        tfk.layers.Dense(2 * LATENT),
    ])


def decoder():
    return tfk.Sequential([
        tfk.layers.Dense(64, activation="elu"),
        tfk.layers.Conv1D(32, 3, padding="same", activation="elu"),
        tfk.layers.Dense(SENSORS),
    ])


class GPVAE(tf.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = encoder(), decoder()
        self.log_noise = tf.Variable(-1.0, name="log_noise")
        # kernel hyper-parameters: set from domain knowledge, kept in the checkpoint, not trained
        self.length_scale = tf.Variable(np.geomspace(0.02, 0.2, LATENT).astype("float32"), trainable=False)
        self.amplitude = tf.Variable(1.0, trainable=False)
        self.grid = tf.constant(np.linspace(0, 1, T, dtype="float32")[:, None])

    def prior(self):
        kernel = tfp.math.psd_kernels.MaternThreeHalves(self.amplitude, self.length_scale)
        cov = kernel.matrix(self.grid, self.grid) + 1e-3 * tf.eye(T)   # (LATENT, T, T)
        return tfd.MultivariateNormalTriL(loc=tf.zeros([T]), scale_tril=tf.linalg.cholesky(cov))

    def elbo(self, x):
        stats = self.enc(x)
        loc, raw = tf.split(stats, 2, axis=-1)
        posterior = tfd.Normal(loc, 1e-3 + tf.nn.softplus(raw))
        z = posterior.sample()                                          # (B, T, LATENT)
        likelihood = tfd.Normal(self.dec(z), tf.exp(self.log_noise))
        log_px = tf.reduce_sum(likelihood.log_prob(x), axis=[1, 2])
        log_qz = tf.reduce_sum(posterior.log_prob(z), axis=[1, 2])
        log_pz = tf.reduce_sum(self.prior().log_prob(tf.transpose(z, [0, 2, 1])), axis=1)
        return log_px + log_pz - log_qz


def main():
    x = make_series()
    ds = tf.data.Dataset.from_tensor_slices(x).shuffle(N_SERIES, seed=SEED)
    ds = ds.batch(BATCH, drop_remainder=True).prefetch(2)
    model = GPVAE()
    model.elbo(x[:2])                                                   # builds the layers
    opt = tfk.optimizers.Adam(LR)
    variables = model.trainable_variables

    @tf.function
    def train_step(batch):
        with tf.GradientTape() as tape:
            loss = -tf.reduce_mean(model.elbo(batch)) / (T * SENSORS)
        grads = tape.gradient(loss, variables)
        grads, norm = tf.clip_by_global_norm(grads, 5.0)
        opt.apply_gradients(zip(grads, variables))
        return loss, norm

    for epoch in range(EPOCHS):
        losses = []
        for batch in ds:
            loss, norm = train_step(batch)
            losses.append(loss)
        print(f"epoch {epoch}: -ELBO/dim {tf.reduce_mean(losses):.4f} grad norm {norm:.3f} "
              f"noise {tf.exp(model.log_noise).numpy():.3f}")


if __name__ == "__main__":
    main()
