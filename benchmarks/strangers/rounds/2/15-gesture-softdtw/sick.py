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
    width = T + 1
    cells = tf.TensorArray(tf.float32, size=width * width, clear_after_read=False)
    cells = cells.write(0, tf.zeros([BATCH]))
    for k in tf.range(1, width):
        cells = cells.write(k, tf.fill([BATCH], BIG))
        cells = cells.write(k * width, tf.fill([BATCH], BIG))
    for i in tf.range(1, width):
        for j in tf.range(1, width):
            at = i * width + j
            best = softmin(cells.read(at - width - 1), cells.read(at - width), cells.read(at - 1))
            cells = cells.write(at, cost[:, i - 1, j - 1] + best)
    return cells.read(width * width - 1)


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
