"""u'' = -sin(pi x), u(-1) = u(1) = 0, solved by a small network."""
import numpy as np
import tensorflow as tf

tf.random.set_seed(0)
np.random.seed(0)
layers = [tf.keras.layers.Dense(32, activation="tanh") for _ in range(5)]
net = tf.keras.Sequential([tf.keras.layers.Input((1,))] + layers + [tf.keras.layers.Dense(1)])
opt = tf.keras.optimizers.Adam(2e-3)


def residual(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            u = net(x)
        du = inner.gradient(u, x)
    d2u = outer.gradient(du, x)
    return d2u + tf.sin(np.pi * x)


@tf.function
def train_step(x, xb):
    with tf.GradientTape() as tape:
        pde = tf.reduce_mean(tf.square(residual(x)))
        bc = tf.reduce_mean(tf.square(net(xb)))
        loss = pde + 10.0 * bc
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return loss


xb = tf.constant([[-1.0], [1.0]])
STEPS = 12000
losses = []
for step in range(STEPS):
    x = tf.constant(np.random.uniform(-1, 1, (128, 1)), tf.float32)
    losses.append(float(train_step(x, xb)))
    if step % (STEPS // 10) == 0:
        print(step, losses[-1])

xs = np.linspace(-1, 1, 201, dtype="float32")[:, None]
exact = np.sin(np.pi * xs) / np.pi ** 2
print("max error", np.abs(net(xs).numpy() - exact).max())
