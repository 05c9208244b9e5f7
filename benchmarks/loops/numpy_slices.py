"""A custom loop over slices of NumPy arrays in a new order each epoch, with a `@tf.function` step."""

import argparse

import numpy as np
import tensorflow as tf

from stopwatch import tick

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--lr", type=float, default=1e-3)
args = parser.parse_args()

np.random.seed(0)
tf.random.set_seed(0)

N, D, H = 7680, 64, 1024
X = np.random.randn(N, D).astype(np.float32)
Y = np.sin(X[:, :1]) + 0.5 * X[:, 1:2] ** 2


def glorot(rows, columns):
    """Return a matrix of weights."""
    return tf.Variable(tf.random.normal((rows, columns)) * np.sqrt(2 / (rows + columns)))


w1, b1 = glorot(D, H), tf.Variable(tf.zeros(H))
w2, b2 = glorot(H, H), tf.Variable(tf.zeros(H))
w3, b3 = glorot(H, 1), tf.Variable(tf.zeros(1))
params = [w1, b1, w2, b2, w3, b3]
opt = tf.keras.optimizers.Adam(args.lr)


def net(x):
    """Return a prediction for each row."""
    h = tf.nn.relu(x @ w1 + b1)
    h = tf.nn.relu(h @ w2 + b2)
    return h @ w3 + b3


@tf.function
def train(x, y):
    """Take a step; return its loss."""
    with tf.GradientTape() as t:
        loss = tf.reduce_mean((net(x) - y) ** 2)
    grads = t.gradient(loss, params)
    opt.apply_gradients(zip(grads, params, strict=True))
    return loss


for epoch in range(args.epochs):
    perm = np.random.permutation(N)
    losses = []
    for i in range(0, N, args.batch_size):
        tick()
        idx = perm[i : i + args.batch_size]
        losses.append(train(X[idx], Y[idx]).numpy())
    print(f"epoch {epoch}  loss {np.mean(losses):.5f}")
