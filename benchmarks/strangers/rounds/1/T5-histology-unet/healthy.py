"""Gland segmentation in histology slides."""
import keras
import numpy as np
from keras import layers

SIZE = 192
BATCH = 2
rng = np.random.default_rng(0)
slides = rng.random((140, SIZE, SIZE, 3), dtype="float32")
glands = (slides[..., :1] > 0.6).astype("float32")


def block(x, width):
    for _ in range(2):
        x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
    return x


inputs = keras.Input((SIZE, SIZE, 3))
d1 = block(inputs, 16)
d2 = block(layers.MaxPooling2D()(d1), 32)
d3 = block(layers.MaxPooling2D()(d2), 64)
u2 = block(layers.Concatenate()([layers.UpSampling2D()(d3), d2]), 32)
u1 = block(layers.Concatenate()([layers.UpSampling2D()(u2), d1]), 16)
outputs = layers.Conv2D(1, 1, activation="sigmoid")(u1)
model = keras.Model(inputs, outputs)
model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy")
model.fit(slides, glands, batch_size=BATCH, epochs=1, verbose=2)
