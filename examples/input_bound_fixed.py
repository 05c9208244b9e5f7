"""The training of `input_bound.py`, with whole batches augmented by TensorFlow, ahead of the step.

TensorFlow's operations run on every core beside the training step; Python runs on one and stops it.
"""

import keras
import numpy as np
import tensorflow as tf

IMAGES, SIZE, CLASSES, BATCH = 1024, 32, 10, 32
BLUR = np.array([1, 4, 6, 4, 1], dtype=np.float32) / 16


def augment(images, labels):
    """Blur a batch of images along both axes and change the brightness of each."""
    for shape in ((1, 5, 1, 1), (5, 1, 1, 1)):
        kernel = tf.tile(tf.reshape(BLUR, shape), (1, 1, 3, 1))
        images = tf.nn.depthwise_conv2d(images, kernel, (1, 1, 1, 1), "SAME")
    return images * tf.random.uniform((tf.shape(images)[0], 1, 1, 1), 0.8, 1.2), labels


def main():
    """Train for four epochs."""
    images = np.random.default_rng(0).random((IMAGES, SIZE, SIZE, 3), dtype=np.float32)
    labels = np.arange(IMAGES) % CLASSES

    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(IMAGES)
    dataset = dataset.batch(BATCH)
    dataset = dataset.map(augment, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    model = keras.Sequential(
        [
            keras.Input((SIZE, SIZE, 3)),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(16, 3, activation="relu"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(CLASSES),
        ]
    )
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(dataset, epochs=4, verbose=2)


if __name__ == "__main__":
    main()
