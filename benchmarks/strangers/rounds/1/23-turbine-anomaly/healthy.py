"""Convolutional autoencoder for anomaly detection in turbine vibration."""
import numpy as np
import tensorflow as tf

tf.random.set_seed(7)
rng = np.random.default_rng(7)

LENGTH, CHANNELS, BATCH = 256, 6, 64
t = np.arange(LENGTH) / 50.0
phase = rng.uniform(0, 6.28, (3200, 1, CHANNELS))
windows = np.sin(t[None, :, None] * 3 + phase) + rng.normal(0, 0.1, (3200, LENGTH, CHANNELS))
windows = windows.astype("float32")


def conv_weights(width, c_in, c_out):
    scale = np.sqrt(2.0 / (width * c_in))
    return tf.Variable(tf.random.normal((width, c_in, c_out), stddev=scale)), tf.Variable(tf.zeros(c_out))


layers = [conv_weights(7, CHANNELS, 16), conv_weights(5, 16, 32), conv_weights(5, 32, 16), conv_weights(7, 16, CHANNELS)]
variables = [v for layer in layers for v in layer]
slots_m = [tf.Variable(tf.zeros_like(v)) for v in variables]
slots_v = [tf.Variable(tf.zeros_like(v)) for v in variables]


def autoencoder(x):
    (w1, b1), (w2, b2), (w3, b3), (w4, b4) = layers
    h = tf.nn.elu(tf.nn.conv1d(x, w1, 2, "SAME") + b1)
    h = tf.nn.elu(tf.nn.conv1d(h, w2, 2, "SAME") + b2)
    h = tf.repeat(h, 2, axis=1)
    h = tf.nn.elu(tf.nn.conv1d(h, w3, 1, "SAME") + b3)
    h = tf.repeat(h, 2, axis=1)
    return tf.nn.conv1d(h, w4, 1, "SAME") + b4


@tf.function
def train_step(x, step):
    with tf.GradientTape() as tape:
        error = tf.reduce_mean(tf.square(autoencoder(x) - x), axis=[1, 2])
        loss = tf.reduce_mean(error)
    grads, norm = tf.clip_by_global_norm(tape.gradient(loss, variables), 1.0)
    rate = 1e-3 * tf.sqrt(1 - 0.999**step) / (1 - 0.9**step)
    for var, g, m, v in zip(variables, grads, slots_m, slots_v):
        m.assign(0.9 * m + 0.1 * g)
        v.assign(0.999 * v + 0.001 * g * g)
        var.assign_sub(rate * m / (tf.sqrt(v) + 1e-7))
    return loss, norm


ds = tf.data.Dataset.from_tensor_slices(windows).shuffle(3200).batch(BATCH, drop_remainder=True).repeat()
for step, batch in enumerate(ds.prefetch(2).take(150)):
    loss, norm = train_step(batch, tf.constant(step + 1.0))
    if step % 50 == 0:
        print(f"step {step} loss {loss.numpy():.4f} grad norm {norm.numpy():.3f}")

scores = tf.reduce_mean(tf.square(autoencoder(windows[:256]) - windows[:256]), axis=[1, 2])
print("threshold", float(tf.reduce_mean(scores) + 3 * tf.math.reduce_std(scores)))
