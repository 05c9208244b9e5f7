"""Bearing-fault detector on vibration windows (tf_keras, the legacy Keras 2 API).

The learning rate is lowered by hand after each pass, as in the old notebook.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import scipy.signal
import tensorflow as tf
import tf_keras as keras
from tf_keras import layers

WINDOW, CHANNELS, BATCH = 1024, 3, 32
PASSES, STEPS = 7, 16
LR0, DECAY = 2e-3, 0.8


def vibration(n, rng):
    """Band-passed noise; broken bearings ring at a harmonic."""
    y = rng.integers(0, 2, n).astype("float32")
    x = rng.normal(0, 1, (n, WINDOW, CHANNELS))
    sos = scipy.signal.butter(4, [0.05, 0.45], "bandpass", output="sos")
    x = scipy.signal.sosfilt(sos, x, axis=1)
    t = np.arange(WINDOW)[None, :, None]
    ring = np.sin(0.41 * t + rng.uniform(0, 6.28, (n, 1, 1)))
    x += 0.25 * y[:, None, None] * ring
    return x.astype("float32"), y


def res_unit(x, filters, rate):
    y = layers.Conv1D(filters, 5, padding="causal", dilation_rate=rate)(x)
    y = layers.BatchNormalization()(y)
    y = layers.Activation("swish")(y)
    y = layers.Conv1D(filters, 1)(y)
    y = layers.SpatialDropout1D(0.05)(y)
    return layers.Add()([x, y])


def build_model():
    inputs = keras.Input((WINDOW, CHANNELS))
    x = layers.Conv1D(24, 7, strides=4, padding="same", activation="swish")(inputs)
    for rate in (1, 2, 4, 8, 16, 1, 2, 4):
        x = res_unit(x, 24, rate)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dense(32, activation="swish")(x)
    return keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))


def compile_model(model, lr):
    model.compile(
        optimizer=keras.optimizers.RMSprop(learning_rate=lr),
        loss="binary_crossentropy",
        metrics=["accuracy", keras.metrics.AUC(name="auc")],
    )


def main():
    keras.utils.set_random_seed(5)
    rng = np.random.default_rng(5)
    x, y = vibration(BATCH * STEPS, rng)
    x = (x - x.mean(axis=(0, 1))) / x.std(axis=(0, 1))
    model = build_model()
    lr = LR0
    compile_model(model, lr)
    for k in range(PASSES):
        history = model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)
        h = history.history
        print(f"pass {k}: lr={lr:.5f} loss={h['loss'][0]:.4f} auc={h['auc'][0]:.3f}")
        lr *= DECAY
        compile_model(model, lr)
    pred = model.predict(x[:64], verbose=0)
    print("mean score", float(pred.mean()))


if __name__ == "__main__":
    main()
