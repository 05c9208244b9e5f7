"""Trains a small model in a loop of its own, with work between the steps; writes a checkpoint and reads itself."""

import inspect
import sys
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

REPEATS = 40


def work():
    """Take the same time between any two steps on a busy machine too, so that few rounds give a narrow figure."""
    time.sleep(REPEATS * 0.0003)


def main():
    """Train for as many steps as asked."""
    model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(64), keras.layers.Dense(1)])
    optimizer = keras.optimizers.SGD(0.01)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    random = np.random.default_rng(0)
    x = tf.constant(random.random((16, 32), dtype=np.float32))
    y = tf.constant(random.random((16, 1), dtype=np.float32))
    for _ in range(int(sys.argv[1])):
        train_step(x, y)
        work()
    Path("checkpoint.txt").write_text(inspect.getsource(work) + Path(__file__).read_text())


if __name__ == "__main__":
    main()
