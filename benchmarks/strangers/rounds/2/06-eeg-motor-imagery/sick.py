"""Shallow ConvNet for motor imagery; recordings come as channels x time x trials (MATLAB order)."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

CHANNELS, TIME, TRIALS, BATCH = 22, 256, 2560, 64
rng = np.random.default_rng(0)

# stands in for scipy.io.loadmat("A01T.mat")["data"]
eeg = rng.standard_normal((CHANNELS, TIME, TRIALS), dtype="float32")
y = rng.integers(0, 4, TRIALS)
eeg[:4] += y * np.linspace(0, 0.3, TIME, dtype="float32")[None, :, None]

# trials first, channels last
x = np.transpose(eeg, (2, 1, 0))
train_idx, test_idx = np.arange(2048), np.arange(2048, TRIALS)

model = tf.keras.Sequential([
    tf.keras.Input((TIME, CHANNELS)),
    layers.Conv1D(24, 25, strides=4, padding="same", use_bias=False),
    layers.BatchNormalization(),
    layers.Activation("elu"),
    layers.AveragePooling1D(4),
    layers.Dropout(0.25),
    layers.Conv1D(24, 8, padding="same", activation="elu"),
    layers.Flatten(),
    layers.Dense(4, activation="softmax"),
])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])

for epoch in range(3):
    rng.shuffle(train_idx)
    for start in range(0, len(train_idx), BATCH):
        rows = train_idx[start : start + BATCH]
        logs = model.train_on_batch(x[rows], y[rows], return_dict=True)
    print(epoch, {k: round(float(v), 4) for k, v in logs.items()})
print("test", model.evaluate(x[test_idx][:128], y[test_idx][:128], verbose=0))
