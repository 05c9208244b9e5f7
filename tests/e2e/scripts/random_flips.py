"""Trains on images that a map on one thread changes at random."""

import sys

import keras
import tensorflow as tf


def augment(image, label):
    """Flip an image, and change its colors, by random numbers from a generator."""
    image = tf.image.random_flip_left_right(image)
    image = tf.image.random_contrast(image, 0.5, 1.5)
    return image, label


def main():
    """Train for as many steps as asked."""
    keras.utils.set_random_seed(1)
    images = tf.random.stateless_uniform((24, 96, 96, 3), (1, 2))
    labels = tf.random.stateless_uniform((24,), (3, 4), maxval=4, dtype=tf.int32)
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.map(augment)
    dataset = dataset.batch(48).repeat().prefetch(2)
    model = keras.Sequential(
        [
            keras.Input((96, 96, 3)),
            keras.layers.Conv2D(4, 3, strides=4, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(4, activation="softmax"),
        ]
    )
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(dataset, steps_per_epoch=int(sys.argv[1]), epochs=1, verbose=0)


if __name__ == "__main__":
    main()
