"""Forecasts the sales of shops. Most of its time is not in its training steps: see docs/tutorial.md."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

SHOPS, DAYS, WINDOW, EPOCHS = 60, 400, 28, 8


def read_sales():
    """Return the daily sales of each shop; these are made up."""
    random = np.random.default_rng(0)
    season = 1 + 0.3 * np.sin(np.arange(DAYS) * 2 * np.pi / 7)
    return random.gamma(2.0, 50.0, (SHOPS, 1)) * season + random.normal(0, 5, (SHOPS, DAYS))


def make_windows(sales):
    """Return the windows of days before each day, and the sales of that day."""
    windows, targets = np.empty((0, WINDOW)), np.empty(0)
    for shop in sales:
        scaled = shop / shop.mean()
        for day in range(WINDOW, DAYS):
            windows = np.append(windows, [scaled[day - WINDOW : day]], axis=0)
            targets = np.append(targets, scaled[day])
    return windows.astype("float32"), targets.astype("float32")


def make_model():
    """Return a small network."""
    return keras.Sequential(
        [
            keras.layers.Input((WINDOW,)),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(128, activation="relu"),
            keras.layers.Dense(1),
        ]
    )


def train(model, windows, targets):
    """Train with a learning rate that falls from epoch to epoch."""
    for epoch in range(EPOCHS):
        model.compile(keras.optimizers.Adam(1e-3 * 0.8**epoch), "mse")
        model.fit(windows, targets, batch_size=256, epochs=1, verbose=0)


def forecast(model, sales):
    """Return the sales of the next day for each shop."""
    return [
        shop.mean() * model.predict((shop[-WINDOW:] / shop.mean())[None], verbose=0)[0, 0]
        for shop in sales
    ]


if __name__ == "__main__":
    table = read_sales()
    inputs, outputs = make_windows(table)
    network = make_model()
    train(network, inputs, outputs)
    print(f"{sum(forecast(network, table)):.0f} sales expected tomorrow")
