"""A bare counter: `for step in range(n): loss = train_step()`, which draws its points itself (PINN)."""

import numpy as np
import tensorflow as tf

from stopwatch import tick

# u'' = -pi^2 sin(pi x) on [-1, 1] with u = 0 at both ends: u = sin(pi x).
STEPS, POINTS, WIDTH = 200, 768, 128
PI = np.pi

tf.keras.utils.set_random_seed(1234)


class PINN(tf.Module):
    """A network that learns to satisfy a differential equation."""

    def __init__(self):
        super().__init__()
        self.net = tf.keras.Sequential(
            [tf.keras.Input((1,))]
            + [tf.keras.layers.Dense(WIDTH, activation="tanh") for _ in range(4)]
            + [tf.keras.layers.Dense(1)]
        )
        self.opt = tf.keras.optimizers.Adam(1e-3)

    def residual(self, x):
        """Return how far the equation is missed at each point."""
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                u = self.net(x)
            u_x = inner.gradient(u, x)
        u_xx = outer.gradient(u_x, x)
        return u_xx + PI**2 * tf.sin(PI * x)

    @tf.function
    def train_step(self):
        """Take a step at new points of the domain."""
        x = tf.random.uniform((POINTS, 1), -1.0, 1.0)
        ends = tf.constant([[-1.0], [1.0]])
        with tf.GradientTape() as tape:
            f = tf.reduce_mean(self.residual(x) ** 2)
            b = tf.reduce_mean(self.net(ends) ** 2)
            loss = f + 50.0 * b
        grads = tape.gradient(loss, self.net.trainable_variables)
        self.opt.apply_gradients(zip(grads, self.net.trainable_variables, strict=True))
        return loss


pinn = PINN()
for step in range(STEPS):
    tick()
    loss = pinn.train_step()
    if step % 50 == 0:
        print(f"step {step:5d}  loss {loss.numpy():.4e}")

grid = np.linspace(-1, 1, 101, dtype="float32")[:, None]
error = np.abs(pinn.net(grid).numpy() - np.sin(PI * grid)).max()
print(f"largest error {error:.3e}")
