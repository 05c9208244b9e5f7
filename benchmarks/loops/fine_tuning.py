"""Two calls of `Model.fit`: a short one with a frozen base, then a long one that tunes all of it."""

import keras
import numpy as np

from stopwatch import tick

SIZE, CLASSES = 32, 5


def make_base():
    """Return what stands for a pretrained network."""
    inputs = keras.Input((SIZE, SIZE, 3))
    x = inputs
    for filters in (16, 24, 32):
        x = keras.layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
        x = keras.layers.BatchNormalization()(x)
        x = keras.layers.ReLU()(x)
        x = keras.layers.MaxPooling2D()(x)
    return keras.Model(inputs, x, name="base")


def report(name, history):
    """Print how a phase ended."""
    last = {key: values[-1] for key, values in history.history.items()}
    print(f"{name}: loss {last['loss']:.4f} accuracy {last['accuracy']:.4f}")


keras.utils.set_random_seed(77)
rng = np.random.default_rng(77)
images = rng.random((1920, SIZE, SIZE, 3), dtype=np.float32)
labels = rng.integers(0, CLASSES, 1920)
images[np.arange(1920), labels * 6, :, 0] = 1.0

base = make_base()
base.trainable = False
inputs = keras.Input((SIZE, SIZE, 3))
features = keras.layers.GlobalAveragePooling2D()(base(inputs, training=False))
outputs = keras.layers.Dense(CLASSES)(features)
model = keras.Model(inputs, outputs)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
clock = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())

# First only the new head, on a part of the data.
model.compile(keras.optimizers.Adam(1e-3), loss, metrics=["accuracy"])
first = model.fit(images[:384], labels[:384], epochs=1, verbose=0, callbacks=[clock])
report("warm-up", first)

# Then everything, slowly.
base.trainable = True
model.compile(keras.optimizers.Adam(1e-4), loss, metrics=["accuracy"])
second = model.fit(images, labels, epochs=3, verbose=0, callbacks=[clock])
report("fine-tuning", second)
