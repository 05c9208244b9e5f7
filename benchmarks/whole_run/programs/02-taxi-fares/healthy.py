import numpy as np
import pandas as pd
import tensorflow as tf
from tensorflow import keras

np.random.seed(42)
N = 400000

# fake taxi data, same columns as the original csv
df = pd.DataFrame({
    "pickup": pd.Timestamp("2023-01-01") + pd.to_timedelta(np.random.randint(0, 180 * 86400, N), unit="s"),
    "lat1": 40.7 + np.random.randn(N) * 0.05,
    "lon1": -73.9 + np.random.randn(N) * 0.05,
    "lat2": 40.7 + np.random.randn(N) * 0.05,
    "lon2": -73.9 + np.random.randn(N) * 0.05,
    "passengers": np.random.randint(1, 6, N),
    "vendor": np.random.choice(["A", "B", "C"], N),
})

dlat = np.radians(df["lat2"] - df["lat1"])
dlon = np.radians(df["lon2"] - df["lon1"])
a = (np.sin(dlat / 2) ** 2 + np.cos(np.radians(df["lat1"]))
     * np.cos(np.radians(df["lat2"])) * np.sin(dlon / 2) ** 2)
dist = 6371 * 2 * np.arcsin(np.sqrt(a))
hour = df["pickup"].dt.hour / 24 * 2 * np.pi
weekend = (df["pickup"].dt.dayofweek >= 5).astype(int)
vendor = pd.get_dummies(df["vendor"])
X = np.column_stack([dist, np.sin(hour), np.cos(hour), weekend, df["passengers"], vendor]).astype("float32")
y = (3.0 + 1.8 * dist + 2 * weekend + 0.3 * vendor["A"]).to_numpy("float32")
y = y + np.random.randn(N).astype("float32") * 0.5

mean, std = X.mean(axis=0), X.std(axis=0)
X = (X - mean) / std
split = int(N * 0.8)

model = keras.Sequential([
    keras.layers.Input((X.shape[1],)),
    keras.layers.Dense(128, activation="relu"),
    keras.layers.Dense(64, activation="relu"),
    keras.layers.Dense(1),
])
model.compile("adam", "mse", metrics=["mae"])
history = model.fit(X[:split], y[:split], validation_data=(X[split:], y[split:]),
                    epochs=8, batch_size=256, verbose=0)
print("mae per epoch:", [round(float(v), 3) for v in history.history["val_mae"]])
