"""A U-Net with four levels."""
import keras
from keras import layers


def conv2(x, filters):
    for _ in range(2):
        x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = layers.BatchNormalization()(x)
        x = layers.ReLU()(x)
    return x


def unet(size, widths=(16, 32, 64, 96)):
    inputs = keras.Input((size, size, 1))
    x, skips = inputs, []
    for w in widths[:-1]:
        x = conv2(x, w)
        skips.append(x)
        x = layers.MaxPooling2D()(x)
    x = conv2(x, widths[-1])
    for w, skip in zip(reversed(widths[:-1]), reversed(skips)):
        x = layers.Conv2DTranspose(w, 2, strides=2)(x)
        x = conv2(layers.Concatenate()([x, skip]), w)
    return keras.Model(inputs, layers.Conv2D(1, 1)(x), name="unet")
