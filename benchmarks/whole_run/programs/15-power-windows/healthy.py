import argparse
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description="forecast the load of the next hour")
parser.add_argument("--days", type=int, default=92)
parser.add_argument("--window", type=int, default=48)
parser.add_argument("--epochs", type=int, default=9)
args = parser.parse_args()


def read_meter(days):
    """quarter-hourly load with 6 channels"""
    rng = np.random.default_rng(4)
    t = np.arange(days * 96)
    day = np.sin(2 * np.pi * t / 96)
    week = np.sin(2 * np.pi * t / 672)
    chans = [day, week, day * week, np.roll(day, 20), rng.normal(0, .3, len(t)), day + .5 * week + rng.normal(0, .1, len(t))]
    return np.stack(chans, axis=1)


def make_windows(series, window, horizon=4):
    n = len(series) - window - horizon
    X = np.lib.stride_tricks.sliding_window_view(series, window, axis=0)[:n].transpose(0, 2, 1)
    Y = np.lib.stride_tricks.sliding_window_view(series[:, -1], horizon)[window:window + n].mean(axis=1)
    return X.astype("float32"), Y.astype("float32")


series = read_meter(args.days)
X, Y = make_windows(series, args.window)
cut = int(len(X) * 0.85)
print("windows:", X.shape)

model = tf.keras.models.Sequential()
model.add(tf.keras.layers.Input(X.shape[1:]))
model.add(tf.keras.layers.GRU(24))
model.add(tf.keras.layers.Dense(1))
model.compile(loss="mse", optimizer="adam")
model.fit(X[:cut], Y[:cut], epochs=args.epochs, batch_size=64, verbose=0)
print("test mse", model.evaluate(X[cut:], Y[cut:], batch_size=256, verbose=0))
