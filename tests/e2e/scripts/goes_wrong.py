"""Trains a small model; with GOES_WRONG set, it fails as that says."""

import os
import signal
import time

import tensorflow as tf

HOW = os.environ.get("GOES_WRONG", "")


def main():
    """Train until the run is ended."""
    weights = tf.Variable(tf.ones((8, 8)))
    optimizer = tf.keras.optimizers.SGD(1e30 if HOW == "infinite" else 0.001)
    batch = tf.ones((4, 8))

    @tf.function
    def train_step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((batch @ weights) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        return loss

    for step in range(10**6):
        train_step()
        time.sleep(0.01)
        if step == 30 and HOW == "killed":
            os.kill(os.getpid(), signal.SIGKILL)  # as the kernel does where memory runs out
        if step == 30 and HOW == "crashes":
            tf.reshape(batch, (7, 7))


if __name__ == "__main__":
    main()
