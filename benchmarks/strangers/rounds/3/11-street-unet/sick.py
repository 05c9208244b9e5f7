"""Small U-Net for street scenes."""
import keras
import numpy as np
from keras import layers
from keras.utils import to_categorical

NUM_CLASSES = 20
SIZE = 96
BATCH = 8


class StreetScenes(keras.utils.PyDataset):
    def __init__(self, images, masks, **kwargs):
        super().__init__(**kwargs)
        self.images, self.masks = images, masks

    def __len__(self):
        return len(self.images) // BATCH

    def __getitem__(self, i):
        part = slice(i * BATCH, (i + 1) * BATCH)
        x = self.images[part] / 255.0
        y = to_categorical(self.masks[part], NUM_CLASSES)
        return x, y


def conv(x, filters):
    x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x)


inputs = keras.Input((SIZE, SIZE, 3))
skip1 = conv(layers.Conv2D(8, 3, strides=2, padding="same")(inputs), 8)
skip2 = conv(layers.MaxPooling2D()(skip1), 16)
x = conv(layers.MaxPooling2D()(skip2), 32)
x = conv(layers.Concatenate()([layers.UpSampling2D()(x), skip2]), 16)
x = conv(layers.Concatenate()([layers.UpSampling2D()(x), skip1]), 8)
x = layers.UpSampling2D()(x)
outputs = layers.Conv2D(NUM_CLASSES, 1, activation="softmax")(x)
model = keras.Model(inputs, outputs)

rng = np.random.default_rng(0)
images = rng.integers(0, 256, (256, SIZE, SIZE, 3), dtype="uint8")
masks = rng.integers(0, NUM_CLASSES, (256, SIZE, SIZE), dtype="uint8")
model.compile(keras.optimizers.Adam(1e-3), "categorical_crossentropy")
model.fit(StreetScenes(images, masks), epochs=3, verbose=2)
