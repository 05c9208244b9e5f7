"""Trains a small model in a loop of its own, with work between the steps; writes a checkpoint and reads itself."""

import inspect
import sys
import time
from pathlib import Path

import tensorflow as tf

REPEATS = 40


def work():
    """Take the same time between any two steps on a busy machine too, so that few rounds give a narrow figure."""
    time.sleep(REPEATS * 0.0003)


def main():
    """Train for as many steps as asked."""
    weights = tf.Variable(tf.random.stateless_normal((32, 1), (1, 2)))

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.tanh(x @ weights) - y) ** 2)
        weights.assign_sub(0.01 * tape.gradient(loss, weights))
        return loss

    x = tf.random.stateless_uniform((16, 32), (3, 4))
    y = tf.random.stateless_uniform((16, 1), (5, 6))
    for _ in range(int(sys.argv[1])):
        train_step(x, y)
        work()
    Path("checkpoint.txt").write_text(inspect.getsource(work) + Path(__file__).read_text())


if __name__ == "__main__":
    main()
