"""Train a convolutional network whose layers are slower than this hardware allows.

It computes in float32, has 40 channels where the hardware works on blocks of 16, and normalizes its
batches by many small operations. `float32_convnet_fixed.py` mends all three.
"""

import keras
import numpy as np

IMAGES, SIZE, CLASSES, BATCH = 640, 32, 10, 16


def block(x, channels):
    """Convolve, normalize, activate."""
    x = keras.layers.Conv2D(channels, 3, padding="same", use_bias=False)(x)
    x = keras.layers.BatchNormalization()(x)
    return keras.layers.ReLU()(x)


def main():
    """Train for four epochs."""
    keras.utils.set_random_seed(0)
    images = np.random.default_rng(0).random((IMAGES, SIZE, SIZE, 3), dtype=np.float32)
    labels = np.arange(IMAGES) % CLASSES

    inputs = keras.Input((SIZE, SIZE, 3))
    x = block(inputs, 40)
    x = block(x, 40)
    x = keras.layers.MaxPooling2D()(x)
    x = block(x, 64)
    x = keras.layers.GlobalAveragePooling2D()(x)
    model = keras.Model(inputs, keras.layers.Dense(CLASSES)(x))

    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, labels, batch_size=BATCH, epochs=4, verbose=2)


if __name__ == "__main__":
    main()
