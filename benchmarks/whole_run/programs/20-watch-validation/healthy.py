import numpy as np
import tensorflow as tf


def spiral(n, seed):
    rng = np.random.RandomState(seed)
    label = rng.randint(0, 3, n)
    radius = rng.rand(n)
    angle = label * 2.1 + radius * 4 + rng.randn(n) * 0.25
    pts = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return np.concatenate([pts, rng.randn(n, 14)], 1).astype(np.float32), label


x, y = spiral(12000, 0)
xv, yv = spiral(12000, 1)


model = tf.keras.models.Sequential([
    tf.keras.layers.Input((16,)),
    tf.keras.layers.Dense(100, activation="relu"),
    tf.keras.layers.Dense(100, activation="relu"),
    tf.keras.layers.Dense(3, activation="softmax"),
])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])

h = model.fit(x, y, batch_size=100, epochs=30, validation_data=(xv, yv), verbose=0)
print("best validation loss %.4f" % min(h.history["val_loss"]))
