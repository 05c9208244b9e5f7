"""Autoencoder for bearing sensors; alarms on high reconstruction error."""
import keras
import numpy as np



def load_windows(n=6400, width=256):
    rng = np.random.default_rng(0)
    t = np.arange(width) / width
    phase = rng.uniform(0, 2 * np.pi, (n, 1))
    waves = np.sin(2 * np.pi * 5 * t + phase) + 0.3 * np.sin(2 * np.pi * 17 * t + 2 * phase)
    return waves + 0.05 * rng.normal(size=(n, width))


def build(width):
    model = keras.Sequential([keras.Input((width,))])
    for units in (384, 128, 16, 128, 384):
        model.add(keras.layers.Dense(units, activation="elu"))
    model.add(keras.layers.Dense(width))
    model.compile(optimizer=keras.optimizers.Adam(5e-4), loss="mae")
    return model


if __name__ == "__main__":
    windows = load_windows().astype("float32")
    mean, std = windows.mean(), windows.std()
    windows = (windows - mean) / std
    model = build(windows.shape[1])
    model.fit(windows, windows, batch_size=128, epochs=4, verbose=2)
    error = np.abs(model.predict(windows[:512], verbose=0) - windows[:512]).mean(axis=1)
    print("threshold", np.quantile(error, 0.99))
