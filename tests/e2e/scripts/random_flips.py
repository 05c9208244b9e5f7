"""Trains on images that a map on one thread changes at random."""

import sys

import tensorflow as tf


def augment(image, label):
    """Flip an image, and change its colors, by random numbers from a generator."""
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_contrast(image, 0.5, 1.5)
    return image, label


def main():
    """Train for as many steps as asked."""
    tf.random.set_seed(1)
    images = tf.random.stateless_uniform((24, 96, 96, 3), (1, 2))
    labels = tf.random.stateless_uniform((24,), (3, 4), maxval=4, dtype=tf.int32)
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.map(augment)
    dataset = dataset.batch(48).repeat().prefetch(2)
    weights = tf.Variable(tf.zeros((96 * 96 * 3, 4)))

    @tf.function
    def train_step(images, labels):
        with tf.GradientTape() as tape:
            logits = tf.reshape(images, (24, -1)) @ weights
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        weights.assign_sub(0.0001 * tape.gradient(loss, weights))
        return loss

    for batch in dataset.take(int(sys.argv[1])):
        train_step(*batch)


if __name__ == "__main__":
    main()
