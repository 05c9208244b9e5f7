"""Physics-informed network for the viscous Burgers equation u_t + u u_x = nu u_xx."""
import numpy as np
import tensorflow as tf

NU = 0.01 / np.pi
N_COLL, N_DATA, STEPS = 2000, 200, 75
tf.keras.utils.set_random_seed(0)

net = tf.keras.Sequential(
    [tf.keras.Input((2,))] + [tf.keras.layers.Dense(32, activation="tanh") for _ in range(3)] + [tf.keras.layers.Dense(1)]
)
opt = tf.keras.optimizers.Adam(2e-3)
opt.build(net.trainable_variables)

# initial and boundary data
x0 = np.random.uniform(-1, 1, (N_DATA, 1)).astype("float32")
data_in = tf.constant(np.hstack([np.zeros_like(x0), x0]))
data_u = tf.constant(-np.sin(np.pi * x0))


def u(t, x):
    return net(tf.concat([t, x], axis=1))


def u_t(t, x):
    with tf.GradientTape() as tape:
        tape.watch(t)
        value = u(t, x)
    return tape.gradient(value, t)


def u_x(t, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = u(t, x)
    return tape.gradient(value, x)


def u_xx(t, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        slope = u_x(t, x)
    return tape.gradient(slope, x)


def residual(t, x):
    return u_t(t, x) + u(t, x) * u_x(t, x) - NU * u_xx(t, x)


@tf.function
def train_step(t, x):
    with tf.GradientTape() as tape:
        loss_pde = tf.reduce_mean(tf.square(residual(t, x)))
        loss_ic = tf.reduce_mean(tf.square(net(data_in) - data_u))
        loss = loss_pde + loss_ic
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return loss_pde, loss_ic


for step in range(STEPS):
    # resample the collocation points
    t = tf.random.uniform((N_COLL, 1))
    x = tf.random.uniform((N_COLL, 1), -1.0, 1.0)
    pde, ic = train_step(t, x)
    if step % 25 == 0:
        print(f"{step:5d}  pde {float(pde):.4e}  ic {float(ic):.4e}")
