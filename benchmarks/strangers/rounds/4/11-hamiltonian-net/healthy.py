"""Hamiltonian neural network for the double-well oscillator, fitted to noisy phase-space flow."""
import argparse

import numpy as np
import tensorflow as tf


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--hidden", type=int, default=192)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--steps", type=int, default=1500)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--dt", type=float, default=0.05)
    p.add_argument("--seed", type=int, default=0)
    return p.parse_args()


def true_field(z):
    q, p = z[:, :2], z[:, 2:]
    r2 = np.sum(q ** 2, axis=1, keepdims=True)
    return np.concatenate([p, q - q * r2], axis=1)


def simulate(n, dt, rng):
    """Pairs of states that lie dt apart, integrated with small RK4 steps."""
    z0 = rng.normal(0, 0.8, (n, 4))
    z = z0.copy()
    h = dt / 4
    for _ in range(4):
        k1 = true_field(z)
        k2 = true_field(z + 0.5 * h * k1)
        k3 = true_field(z + 0.5 * h * k2)
        k4 = true_field(z + h * k3)
        z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return z0.astype("float32"), (z + rng.normal(0, 1e-3, z.shape)).astype("float32")


class MLP(tf.Module):
    def __init__(self, sizes, name=None):
        super().__init__(name)
        self.weights, self.biases = [], []
        for n_in, n_out in zip(sizes[:-1], sizes[1:]):
            scale = np.sqrt(2.0 / (n_in + n_out))
            self.weights.append(tf.Variable(tf.random.normal((n_in, n_out), stddev=scale)))
            self.biases.append(tf.Variable(tf.zeros(n_out)))

    def __call__(self, x):
        for w, b in zip(self.weights[:-1], self.biases[:-1]):
            x = tf.tanh(tf.matmul(x, w) + b)
        return tf.matmul(x, self.weights[-1]) + self.biases[-1]


class HNN(tf.Module):
    def __init__(self, hidden):
        super().__init__()
        self.energy = MLP([4, hidden, hidden, 1])
        self.J = tf.constant([[0, 0, 1, 0], [0, 0, 0, 1], [-1, 0, 0, 0], [0, -1, 0, 0]],
                             tf.float32)

    def field(self, z):
        """dz/dt = J grad H(z) for every state of the batch."""
        with tf.GradientTape() as tape:
            tape.watch(z)
            H = self.energy(z)[:, 0]
        dH = tape.gradient(H, z)
        return tf.matmul(dH, self.J, transpose_b=True)

    def integrate(self, z, dt):
        k1 = self.field(z)
        k2 = self.field(z + 0.5 * dt * k1)
        k3 = self.field(z + 0.5 * dt * k2)
        k4 = self.field(z + dt * k3)
        return z + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)


class AdamState(tf.Module):
    def __init__(self, variables, lr, b1=0.9, b2=0.999):
        super().__init__()
        self.lr, self.b1, self.b2 = lr, b1, b2
        self.m = [tf.Variable(tf.zeros_like(v)) for v in variables]
        self.v = [tf.Variable(tf.zeros_like(v)) for v in variables]
        self.t = tf.Variable(0.0)

    def apply(self, grads, variables):
        self.t.assign_add(1.0)
        lr = self.lr * tf.sqrt(1 - self.b2 ** self.t) / (1 - self.b1 ** self.t)
        for g, x, m, v in zip(grads, variables, self.m, self.v):
            m.assign(self.b1 * m + (1 - self.b1) * g)
            v.assign(self.b2 * v + (1 - self.b2) * g * g)
            x.assign_sub(lr * m / (tf.sqrt(v) + 1e-8))


def main():
    args = parse_args()
    tf.random.set_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    z0, z1 = (tf.constant(z) for z in simulate(8192, args.dt, rng))
    model = HNN(args.hidden)
    adam = AdamState(model.trainable_variables, args.lr)

    @tf.function
    def train_step(start, end):
        with tf.GradientTape() as tape:
            predicted = model.integrate(start, args.dt)
            loss = tf.reduce_mean(tf.square((predicted - end) / args.dt))
        grads = tape.gradient(loss, model.trainable_variables,
                              unconnected_gradients=tf.UnconnectedGradients.ZERO)
        adam.apply(grads, model.trainable_variables)
        return loss

    for step in range(args.steps):
        rows = rng.integers(0, z0.shape[0], args.batch)
        loss = train_step(tf.gather(z0, rows), tf.gather(z1, rows))
        if step % 100 == 0:
            print(f"step {step:5d}  loss {float(loss):.5f}")
    H = model.energy(z0[:512])[:, 0].numpy()
    print("spread of the learned energy:", H.std())


if __name__ == "__main__":
    main()
