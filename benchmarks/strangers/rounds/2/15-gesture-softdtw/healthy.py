"""Aligning gesture recordings to templates with a soft-DTW loss (Cuturi & Blondel)."""
import numpy as np
import tensorflow as tf

T, JOINTS, BATCH, STEPS, GAMMA = 14, 6, 32, 64, 0.5
BIG = 1e6
rng = np.random.default_rng(0)
tf.keras.utils.set_random_seed(0)

phase = np.linspace(0, 1, T)[None] ** rng.uniform(0.5, 2, (1024, 1))
noise = rng.normal(0, 0.1, (1024, T, JOINTS))
sensor = (np.sin(6.28 * phase[..., None] * np.arange(1, JOINTS + 1)) + noise).astype("float32")
template = np.sin(6.28 * np.linspace(0, 1, T)[:, None] * np.arange(1, JOINTS + 1)).astype("float32")
template = np.repeat(template[None], 1024, 0)


def softmin(a, b, c):
    return -GAMMA * tf.reduce_logsumexp(tf.stack([a, b, c]) / -GAMMA, axis=0)


def soft_dtw(cost):
    # anti-diagonal by anti-diagonal, every diagonal padded to T + 1 cells
    index = np.array([[i * T + (d - i) if 0 <= d - i < T else T * T for i in range(T)] for d in range(2 * T - 1)])
    flat = tf.pad(tf.reshape(cost, [BATCH, T * T]), [[0, 0], [0, 1]], constant_values=BIG)
    diagonals = tf.gather(flat, index, axis=1)
    inf = tf.fill([BATCH, 1], BIG)
    older = tf.concat([tf.zeros([BATCH, 1]), tf.fill([BATCH, T], BIG)], 1)
    old = tf.fill([BATCH, T + 1], BIG)
    for d in range(2 * T - 1):
        new = diagonals[:, d] + softmin(older[:, :-1], old[:, :-1], old[:, 1:])
        older, old = old, tf.concat([inf, new], 1)
    return old[:, -1]


net = tf.keras.Sequential([
    tf.keras.Input((T, JOINTS)),
    tf.keras.layers.Conv1D(32, 5, padding="same", activation="relu"),
    tf.keras.layers.Conv1D(32, 5, padding="same", activation="relu"),
    tf.keras.layers.Conv1D(JOINTS, 1),
])
opt = tf.keras.optimizers.Adam(1e-3)
opt.build(net.trainable_variables)


@tf.function
def train_step(x, ref):
    with tf.GradientTape() as tape:
        z = net(x, training=True)
        cost = tf.reduce_sum(tf.square(z[:, :, None] - ref[:, None]), -1)
        loss = tf.reduce_mean(soft_dtw(cost))
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return loss


for step in range(STEPS):
    rows = rng.integers(0, len(sensor), BATCH)
    loss = train_step(tf.constant(sensor[rows]), tf.constant(template[rows]))
    if step % 20 == 0:
        print(step, float(loss))
