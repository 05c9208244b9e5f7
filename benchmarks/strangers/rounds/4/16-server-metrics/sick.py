# # Anomaly detection in server metrics with an LSTM autoencoder
# CPU, memory, disk and network counters, sampled once a minute; windows of one hour and more.
import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import numpy as np
import tensorflow as tf
from tensorflow.keras import Sequential
from tensorflow.keras.callbacks import EarlyStopping
from tensorflow.keras.layers import LSTM, Dense, Dropout, RepeatVector, TimeDistributed

np.random.seed(42)
tf.random.set_seed(42)

# ## Data
N_MINUTES = 60 * 24 * 2
METRICS = ["cpu", "mem", "disk_io", "net_in", "net_out", "load1", "load5", "swap"]
WINDOW = 64

t = np.arange(N_MINUTES)
day = 2 * np.pi * t / 1440
frame = {}
for i, name in enumerate(METRICS):
    base = 0.5 + 0.3 * np.sin(day + i) + 0.1 * np.sin(7 * day * (i + 1))
    frame[name] = base + np.random.normal(0, 0.05, N_MINUTES)
values = np.stack([frame[m] for m in METRICS], axis=1).astype("float32")

split = int(N_MINUTES * 0.85)
mean, std = values[:split].mean(0), values[:split].std(0)
scaled = (values - mean) / std


def create_windows(data, window, stride=1):
    out = []
    for start in range(0, len(data) - window + 1, stride):
        out.append(data[start : start + window])
    return np.stack(out)


X_train = create_windows(scaled[:split], WINDOW, 2)
X_test = create_windows(scaled[split:], WINDOW, 4)
print("train", X_train.shape, "test", X_test.shape)

# inject a few incidents into the test period
y_test = np.zeros(len(X_test), bool)
for k in np.random.choice(len(X_test), 8, replace=False):
    X_test[k, 20:40, :3] += 3.0
    y_test[k] = True

# ## Model
n_features = X_train.shape[2]
model = Sequential(
    [
        LSTM(32, return_sequences=False),
        Dropout(0.2),
        RepeatVector(WINDOW),
        LSTM(32, return_sequences=True),
        Dropout(0.2),
        TimeDistributed(Dense(64, activation="relu")),
        TimeDistributed(Dense(n_features)),
    ]
)
model.compile(optimizer="adam", loss="mae")
model.build((None, WINDOW, n_features))
model.summary()

# ## Training
history = model.fit(
    X_train,
    X_train,
    epochs=6,
    batch_size=48,
    validation_data=(X_test[~y_test], X_test[~y_test]),
    callbacks=[EarlyStopping(monitor="val_loss", patience=3, restore_best_weights=True)],
    shuffle=True,
    verbose=2,
)

# ## Threshold
train_error = np.mean(np.abs(model.predict(X_train[::4], verbose=0) - X_train[::4]), axis=(1, 2))
threshold = np.quantile(train_error, 0.995)
test_error = np.mean(np.abs(model.predict(X_test, verbose=0) - X_test), axis=(1, 2))
flagged = test_error > threshold
recall = (flagged & y_test).sum() / y_test.sum()
precision = (flagged & y_test).sum() / max(flagged.sum(), 1)
print(f"threshold {threshold:.4f}  recall {recall:.2f}  precision {precision:.2f}")
