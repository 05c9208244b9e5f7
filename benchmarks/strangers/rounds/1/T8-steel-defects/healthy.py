"""Surface defect classification with warm-up and a batch log."""
import os
import tempfile

import keras
import numpy as np
from keras import layers

SIZE, BATCH = 80, 16
rng = np.random.default_rng(0)
plates = rng.random((1200, SIZE, SIZE, 1), dtype="float32")
defects = rng.integers(0, 6, 1200)


class WarmupLogger(keras.callbacks.Callback):
    def __init__(self, path, warmup=50, peak=1e-3):
        super().__init__()
        self.file, self.warmup, self.peak, self.seen = open(path, "w"), warmup, peak, 0

    def on_train_batch_begin(self, batch, logs=None):
        self.seen += 1
        self.model.optimizer.learning_rate.assign(self.peak * min(1.0, self.seen / self.warmup))

    def on_train_batch_end(self, batch, logs=None):
        self.file.write(f"{self.seen},{logs['loss']:.5f},{logs['accuracy']:.4f}\n")
        self.file.flush()


model = keras.Sequential([
    layers.Input((SIZE, SIZE, 1)),
    layers.Conv2D(24, 5, strides=2, padding="same", activation="relu"),
    layers.Conv2D(48, 3, padding="same", activation="relu"),
    layers.Conv2D(48, 3, padding="same", activation="relu"),
    layers.MaxPooling2D(),
    layers.Conv2D(96, 3, padding="same", activation="relu"),
    layers.GlobalAveragePooling2D(),
    layers.Dense(6, activation="softmax"),
])
model.compile(keras.optimizers.Adam(1e-5), "sparse_categorical_crossentropy", metrics=["accuracy"])
log = os.path.join(tempfile.mkdtemp(), "batches.csv")
model.fit(plates, defects, batch_size=BATCH, epochs=1, verbose=2, callbacks=[WarmupLogger(log)])
