"""Behler-Parrinello style potential for copper clusters, energies only."""
import numpy as np
import tensorflow as tf

ATOMS, BATCH, HIDDEN, STEPS, SHELLS = 20, 48, 96, 80, 24
rng = np.random.default_rng(0)
tf.random.set_seed(0)

base = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3)[:ATOMS] * 2.3
pos = base + rng.normal(0, 0.15, (960, ATOMS, 3))
diff = pos[:, :, None] - pos[:, None]
dist = np.sqrt((diff**2).sum(-1) + np.eye(ATOMS) * 1e6)
energy = (np.exp(-2 * (dist - 2.5)) - 2 * np.exp(-(dist - 2.5))).sum((1, 2)) / ATOMS
centers, width = np.linspace(1.5, 6.0, SHELLS), 4.0


def dense(n_in, n_out):
    w = rng.normal(0, 1 / np.sqrt(n_in), (n_in, n_out))
    return tf.Variable(w), tf.Variable(np.zeros(n_out))


net = [dense(SHELLS, HIDDEN), dense(HIDDEN, HIDDEN), dense(HIDDEN, HIDDEN), dense(HIDDEN, 1)]
params = [v for pair in net for v in pair]
moments = [tf.Variable(tf.zeros_like(v)) for v in params]


def predict(r):
    d2 = tf.reduce_sum(tf.square(r[:, :, None] - r[:, None]), -1) + tf.eye(ATOMS, dtype=r.dtype) * 1e4
    d = tf.sqrt(d2)
    cutoff = tf.where(d < 6.0, 0.5 * (tf.cos(np.pi * d / 6.0) + 1.0), tf.zeros_like(d))
    g = tf.exp(-width * tf.square(d[..., None] - tf.constant(centers, r.dtype))) * cutoff[..., None]
    h = tf.reduce_sum(g, axis=2)
    for w, b in net[:-1]:
        h = tf.tanh(tf.einsum("baf,fh->bah", h, w) + b)
    w, b = net[-1]
    return tf.reduce_mean(tf.einsum("baf,fh->bah", h, w)[..., 0] + b, axis=1)


@tf.function
def train_step(r, e):
    r += tf.random.normal(tf.shape(r), stddev=0.01, dtype=r.dtype)  # coordinate noise
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(predict(r) - e))
    for v, m, g in zip(params, moments, tape.gradient(loss, params)):
        m.assign(0.9 * m + g)
        v.assign_sub(1e-3 * m)
    return loss


for step in range(STEPS):
    rows = rng.integers(0, len(pos), BATCH)
    loss = train_step(tf.constant(pos[rows]), tf.constant(energy[rows]))
    if step % 20 == 0:
        print(step, float(loss))
