"""PINN for the viscous Burgers equation."""
import keras
import numpy as np
import tensorflow as tf

DTYPE = "float32"
tf.random.set_seed(0)
rng = np.random.default_rng(0)

NU = 0.01 / np.pi
N_COLLOCATION, N_DATA = 600, 100

xt_f = tf.constant(rng.uniform([-1, 0], [1, 1], (N_COLLOCATION, 2)), DTYPE)
x0 = rng.uniform(-1, 1, (N_DATA, 1))
xt_0 = tf.constant(np.hstack([x0, np.zeros_like(x0)]), DTYPE)
u_0 = tf.constant(-np.sin(np.pi * x0), DTYPE)
t_b = rng.uniform(0, 1, (N_DATA, 1))
side = np.where(rng.random((N_DATA, 1)) > 0.5, 1.0, -1.0)
xt_b = tf.constant(np.hstack([side, t_b]), DTYPE)

model = keras.Sequential(
    [keras.layers.Input((2,))]
    + [keras.layers.Dense(64, activation="tanh") for _ in range(5)]
    + [keras.layers.Dense(1)]
)
optimizer = keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(1e-3, 100, 0.95))


def residual(xt):
    x, t = xt[:, :1], xt[:, 1:]
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch([x, t])
            u = model(tf.concat([x, t], axis=1))
        u_x, u_t = inner.gradient(u, [x, t])
    u_xx = outer.gradient(u_x, x)
    return u_t + u * u_x - NU * u_xx


@tf.function
def train_step():
    with tf.GradientTape() as tape:
        loss_f = tf.reduce_mean(tf.square(residual(xt_f)))
        loss_0 = tf.reduce_mean(tf.square(model(xt_0) - u_0))
        loss_b = tf.reduce_mean(tf.square(model(xt_b)))
        loss = loss_f + loss_0 + loss_b
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


for epoch in range(80):
    loss = train_step()
    if epoch % 40 == 0:
        print("epoch", epoch, "loss", float(loss))
