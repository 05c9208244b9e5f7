"""`Model.fit` on NumPy arrays, with early stopping."""

import numpy as np
from keras import Sequential, callbacks, layers, utils

from stopwatch import tick

utils.set_random_seed(42)
rng = np.random.default_rng(42)

# A wave in 256 features; the target is how fast it swings.
speed = rng.uniform(1, 8, size=(6000, 1)).astype("float32")
x = np.sin(speed * np.linspace(0, 3, 256, dtype="float32"))
x += rng.normal(0, 0.1, x.shape).astype("float32")
y = speed

model = Sequential(
    [
        layers.Input((256,)),
        layers.Dense(1024, activation="relu"),
        layers.Dropout(0.2),
        layers.Dense(1024, activation="relu"),
        layers.Dense(1),
    ]
)
model.compile("adam", loss="mse", metrics=["mae"])

history = model.fit(
    x,
    y,
    batch_size=64,
    epochs=3,
    validation_split=0.2,
    verbose=2,
    callbacks=[
        callbacks.EarlyStopping(monitor="val_loss", patience=2, restore_best_weights=True),
        callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick()),
    ],
)
print("best validation loss: {:.4f}".format(min(history.history["val_loss"])))
