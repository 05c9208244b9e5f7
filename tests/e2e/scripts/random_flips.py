"""Trains in a loop of its own, with work between the steps, on images that a map on one thread changes at random.

It writes a checkpoint and reads itself.
"""

import inspect
import sys
import time
from pathlib import Path

import tensorflow as tf

REPEATS = 80


def augment(image):
    """Flip an image, and change its colors, by random numbers from a generator."""
    return tf.image.random_contrast(tf.image.random_flip_left_right(image), 0.5, 1.5)


def work():
    """Take the same time between any two steps on a busy machine too, so that few rounds give a narrow figure."""
    time.sleep(REPEATS * 0.0003)


def main():
    """Train for as many steps as asked."""
    tf.random.set_seed(1)
    images = tf.random.stateless_uniform((8, 48, 48, 3), (1, 2))
    weights = tf.Variable(tf.random.stateless_normal((48 * 48 * 3, 1), (3, 4)))

    @tf.function
    def train_step(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.reshape(batch, (8, -1)) @ weights) ** 2)
        weights.assign_sub(0.00001 * tape.gradient(loss, weights))
        return loss

    dataset = tf.data.Dataset.from_tensor_slices(images)
    dataset = dataset.map(augment)
    for batch in dataset.batch(48).repeat(int(sys.argv[1])).prefetch(2):
        train_step(batch)
        work()
    Path("checkpoint.txt").write_text(inspect.getsource(work) + Path(__file__).read_text())


if __name__ == "__main__":
    main()
