import phase_timer
"""Grid search for learning rate and batch size of a small 1-D convnet."""
import itertools
import numpy as np
import tensorflow as tf

L = tf.keras.layers
phase_timer._T('other')


def sensor_data(n=1500, length=48, seed=0):
    rng = np.random.default_rng(seed)
    t = np.arange(length)
    y = rng.integers(0, 4, n)
    freq = np.array([0.15, 0.3, 0.45, 0.6])[y]
    x = np.sin(freq[:, None] * t + rng.uniform(0, 6, (n, 1))) + rng.normal(0, 0.8, (n, length))
    return x[..., None].astype("float32"), y


def build(lr):
    inputs = L.Input((48, 1))
    h = inputs
    for width in (16, 24, 32):
        h = L.Conv1D(width, 5, padding="same")(h)
        h = L.BatchNormalization()(h)
        h = L.Activation("relu")(h)
        h = L.Conv1D(width, 3, padding="same", activation="relu")(h)
        h = L.MaxPooling1D()(h)
        h = L.Dropout(0.1)(h)
    h = L.GlobalAveragePooling1D()(h)
    model = tf.keras.Model(inputs, L.Dense(4)(h))
    model.compile(optimizer=tf.keras.optimizers.SGD(lr, momentum=0.9),
                  loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["accuracy"])
    return model


phase_timer._T('preparing')
x, y = sensor_data()
x_val, y_val = sensor_data(400, seed=1)
phase_timer._T('other')
grid = list(itertools.product([0.1, 0.05, 0.02, 0.01, 0.005], [32, 64, 128]))
best = None
for lr, batch in grid:
    phase_timer._T('building')
    model = build(lr)
    phase_timer._T('other')
    h = model.fit(x, y, validation_data=(x_val, y_val), epochs=2, batch_size=batch, verbose=0)
    acc = max(h.history["val_accuracy"])
    print(f"lr={lr:<5} batch={batch:<4} val_acc={acc:.3f}")
    if best is None or acc > best[0]:
        best = (acc, lr, batch)
print("best:", best)
