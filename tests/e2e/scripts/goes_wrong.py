"""Trains a small model until its weights are infinite."""

import time

import tensorflow as tf


def main():
    """Train until the run is ended."""
    weights = tf.Variable(tf.ones((8, 8)))
    optimizer = tf.keras.optimizers.SGD(1e30)
    batch = tf.ones((4, 8))

    @tf.function
    def train_step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((batch @ weights) ** 2)
        optimizer.apply_gradients([(tape.gradient(loss, weights), weights)])
        return loss

    for _ in range(10**6):
        train_step()
        time.sleep(0.01)


if __name__ == "__main__":
    main()
