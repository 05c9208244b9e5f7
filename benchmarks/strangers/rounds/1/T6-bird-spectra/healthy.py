"""Bird call classification on mel spectrograms with SpecAugment."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

FRAMES, MELS, SPECIES, BATCH = 96, 64, 20, 16
rng = np.random.default_rng(0)
spectra = rng.normal(size=(640, FRAMES, MELS)).astype("float32")
species = rng.integers(0, SPECIES, 640)


def spec_augment(batch):
    batch = batch.copy()
    f, t = rng.integers(0, MELS - 8), rng.integers(0, FRAMES - 12)
    batch[:, :, f:f + 8] = 0.0
    batch[:, t:t + 12] = 0.0
    return batch


def prepare(x, y):
    x = tf.numpy_function(spec_augment, [x], tf.float32)
    return tf.ensure_shape(x, (None, FRAMES, MELS))[..., None], y


ds = tf.data.Dataset.from_tensor_slices((spectra, species)).shuffle(640).batch(BATCH)
ds = ds.map(prepare, num_parallel_calls=2).prefetch(2)

model = keras.Sequential([
    layers.Input((FRAMES, MELS, 1)),
    layers.Conv2D(24, 3, padding="same", activation="relu"),
    layers.Conv2D(24, 3, padding="same", activation="relu"),
    layers.MaxPooling2D(),
    layers.Conv2D(48, 3, padding="same", activation="relu"),
    layers.MaxPooling2D(),
    layers.Conv2D(64, 3, padding="same", activation="relu"),
    layers.GlobalMaxPooling2D(),
    layers.Dense(SPECIES, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(ds, epochs=2, verbose=2)
