"""Electricity load forecasting, 168 h in -> 24 h out, TSMixer on all substations together.

Windows are served by a Python generator (the data team wants the sampling rule in numpy): recent weeks are drawn
more often, windows with a meter gap are left out."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import pandas as pd
import tensorflow as tf
import keras
from keras import layers

SEED = 77
PAST, AHEAD = 168, 24
STATIONS = 48
BATCH, STEPS_PER_EPOCH, EPOCHS = 64, 40, 3
HALF_LIFE_H = 24 * 60
keras.utils.set_random_seed(SEED)


def load_frame():
    """Hourly load of two years, with daily and weekly shape, weather and a few meter gaps."""
    rng = np.random.default_rng(SEED)
    idx = pd.date_range("2022-01-03", periods=24 * 730, freq="h")
    hour, dow = idx.hour.to_numpy(), idx.dayofweek.to_numpy()
    temp = 12 - 10 * np.cos(2 * np.pi * idx.dayofyear.to_numpy() / 365) + rng.normal(0, 2, len(idx))
    base = 1 + 0.4 * np.sin(2 * np.pi * (hour - 7) / 24) - 0.15 * (dow >= 5)
    scale = rng.lognormal(2, 0.5, STATIONS)
    weather = rng.normal(0.02, 0.01, STATIONS) * np.maximum(16 - temp, 0)[:, None]
    load = scale * (base[:, None] + weather + rng.normal(0, 0.05, (len(idx), STATIONS)))
    frame = pd.DataFrame(load, index=idx, columns=[f"s{i:02d}" for i in range(STATIONS)])
    for start in rng.integers(0, len(idx), 12):
        frame.iloc[start:start + 5, rng.integers(STATIONS)] = np.nan
    return frame


class WindowSampler:
    def __init__(self, values, seed):
        self.values = values
        n = len(values) - PAST - AHEAD
        gap = np.isnan(values).any(axis=1).cumsum()
        whole = gap[PAST + AHEAD - 1:-1] - np.r_[0, gap[:n - 1]] == 0
        self.starts = np.flatnonzero(whole)
        weight = 0.5 ** ((n - self.starts) / HALF_LIFE_H)
        self.cdf = np.cumsum(weight / weight.sum())
        self.rng = np.random.default_rng(seed)

    def __call__(self):
        steps = np.arange(PAST + AHEAD)
        while True:
            pick = np.searchsorted(self.cdf, self.rng.random(BATCH)).clip(max=len(self.starts) - 1)
            window = self.values[self.starts[pick][:, None] + steps]
            yield window[:, :PAST], window[:, PAST:]


def as_dataset(sampler):
    spec = (tf.TensorSpec((BATCH, PAST, STATIONS), tf.float32), tf.TensorSpec((BATCH, AHEAD, STATIONS), tf.float32))
    return tf.data.Dataset.from_generator(sampler, output_signature=spec).prefetch(4)


def mixer_block(x, hidden):
    y = layers.LayerNormalization()(x)
    y = layers.Permute((2, 1))(y)
    y = layers.Dense(PAST, activation="relu")(y)
    x = layers.add([x, layers.Dropout(0.1)(layers.Permute((2, 1))(y))])
    y = layers.LayerNormalization()(x)
    y = layers.Dense(hidden, activation="relu")(y)
    return layers.add([x, layers.Dropout(0.1)(layers.Dense(STATIONS)(y))])


def build():
    x = inp = keras.Input((PAST, STATIONS))
    for _ in range(4):
        x = mixer_block(x, 128)
    x = layers.Permute((2, 1))(x)
    x = layers.Dense(AHEAD)(x)
    model = keras.Model(inp, layers.Permute((2, 1))(x))
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mae")
    return model


def main():
    frame = load_frame()
    split = frame.index[-24 * 60]
    train = frame.loc[:split]
    mean, std = train.mean(), train.std()
    scaled = ((frame - mean) / std).to_numpy("float32")
    n_train = len(train)
    model = build()
    test = WindowSampler(scaled[n_train:], SEED + 1)
    valid = [next(test()) for _ in range(2)]
    vx, vy = (np.concatenate(a) for a in zip(*valid))
    model.fit(
        as_dataset(WindowSampler(scaled[:n_train], SEED)),
        steps_per_epoch=STEPS_PER_EPOCH,
        epochs=EPOCHS,
        validation_data=(vx, vy),
        validation_batch_size=128,
        callbacks=[keras.callbacks.ReduceLROnPlateau(patience=1, factor=0.5)],
        verbose=2,
    )


if __name__ == "__main__":
    main()
