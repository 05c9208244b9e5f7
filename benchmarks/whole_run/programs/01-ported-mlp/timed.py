import phase_timer
"""Fine-tune a ranking MLP whose weights were exported from an old in-house C++ trainer.

The exporter writes one record per neuron: its incoming weights and its bias.
"""
import os
import tempfile

import numpy as np
import tensorflow as tf
phase_timer._T('other')

SIZES = [3072, 1536, 1536, 1]


def fake_export(path):
    """Stands in for the file that comes out of the old trainer."""
    rng = np.random.default_rng(3)
    records = {}
    for li in range(len(SIZES) - 1):
        n_in, n_out = SIZES[li], SIZES[li + 1]
        scale = np.sqrt(2.0 / n_in)
        records[f"layer{li}_w"] = (rng.standard_normal((n_out, n_in)) * scale).astype("float32")
        records[f"layer{li}_b"] = np.zeros(n_out, "float32")
    np.savez(path, **records)


def build_model():
    model = tf.keras.Sequential([tf.keras.layers.Input((SIZES[0],))])
    for li, width in enumerate(SIZES[1:]):
        last = li == len(SIZES) - 2
        model.add(tf.keras.layers.Dense(width, activation=None if last else "relu", name=f"fc{li}"))
    return model


def load_export(model, path):
    data = np.load(path)
    for li in range(len(SIZES) - 1):
        weights = data[f"layer{li}_w"]
        biases = data[f"layer{li}_b"]
        layer = model.get_layer(f"fc{li}")
        for neuron in range(weights.shape[0]):
            kernel, bias = layer.get_weights()
            kernel[:, neuron] = weights[neuron]
            bias[neuron] = biases[neuron]
            layer.set_weights([kernel, bias])
    return model


def main():
    tmp = tempfile.mkdtemp()
    path = os.path.join(tmp, "export.npz")
    phase_timer._T('preparing')
    fake_export(path)

    phase_timer._T('building')
    model = load_export(build_model(), path)
    print("loaded", model.count_params(), "parameters")

    phase_timer._T('preparing')
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4000, SIZES[0])).astype("float32")
    y = (x[:, :20].sum(axis=1, keepdims=True) > 0).astype("float32")
    phase_timer._T('building')
    model.compile(optimizer=tf.keras.optimizers.SGD(0.005),
                  loss=tf.keras.losses.BinaryCrossentropy(from_logits=True))
    phase_timer._T('other')
    hist = model.fit(x, y, batch_size=64, epochs=6, validation_split=0.1, verbose=0)
    for i, (a, b) in enumerate(zip(hist.history["loss"], hist.history["val_loss"])):
        print(f"epoch {i}: loss {a:.4f} val_loss {b:.4f}")
    phase_timer._T('saving')
    model.save_weights(os.path.join(tmp, "tuned.weights.h5"))
    phase_timer._T('other')


if __name__ == "__main__":
    main()
