"""Train a small convolutional network on images that come slowly: its input is the bottleneck.

Each image is blurred by NumPy, one row after the other, while the model waits.
`input_bound_fixed.py` does the same without the wait.
"""

import keras
import numpy as np
import tensorflow as tf

IMAGES, SIZE, CLASSES, BATCH = 1024, 32, 10, 32
BLUR = np.array([1, 4, 6, 4, 1], dtype=np.float32) / 16


def augment(image):
    """Blur an image along both axes and change its brightness."""
    for channel in range(3):
        for row in range(SIZE):
            image[row, :, channel] = np.convolve(image[row, :, channel], BLUR, mode="same")
        for column in range(SIZE):
            image[:, column, channel] = np.convolve(image[:, column, channel], BLUR, mode="same")
    return image * np.random.default_rng().uniform(0.8, 1.2, size=()).astype(np.float32)


def prepare(image, label):
    """Let NumPy augment an image."""
    image = tf.numpy_function(lambda array: augment(array.copy()), [image], tf.float32)
    image.set_shape((SIZE, SIZE, 3))
    return image, label


def main():
    """Train for four epochs."""
    images = np.random.default_rng(0).random((IMAGES, SIZE, SIZE, 3), dtype=np.float32)
    labels = np.arange(IMAGES) % CLASSES

    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    dataset = dataset.shuffle(IMAGES)
    dataset = dataset.map(prepare)
    dataset = dataset.batch(BATCH)

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
