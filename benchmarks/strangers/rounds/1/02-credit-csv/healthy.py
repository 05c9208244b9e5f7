"""Credit default prediction from a CSV file."""
import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

N_ROWS, N_FEATURES, BATCH = 20000, 20, 256

# --- write the data set ---
rng = np.random.default_rng(1)
features = rng.normal(size=(N_ROWS, N_FEATURES))
labels = (features[:, :5].sum(1) + rng.normal(size=N_ROWS) > 1).astype(int)
path = os.path.join(tempfile.mkdtemp(), "credit.csv")
with open(path, "w") as f:
    f.write(",".join(f"x{i}" for i in range(N_FEATURES)) + ",default\n")
    for row, label in zip(features.round(3).tolist(), labels):
        f.write(",".join(map(str, row)) + f",{label}\n")

mean = tf.constant(features.mean(0), tf.float32)
std = tf.constant(features.std(0), tf.float32)


def parse(line):
    fields = tf.io.decode_csv(line, [0.0] * N_FEATURES + [0])
    x = tf.stack(fields[:-1], axis=-1)
    x = (x - mean) / std
    return x, fields[-1]


ds = tf.data.TextLineDataset(path).skip(1)
ds = ds.shuffle(4096)
ds = ds.batch(BATCH, drop_remainder=True)
ds = ds.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
ds = ds.prefetch(tf.data.AUTOTUNE)

inputs = keras.Input((N_FEATURES,))
x = keras.layers.Dense(128, activation="relu")(inputs)
x = keras.layers.Dropout(0.2)(x)
x = keras.layers.Dense(64, activation="relu")(x)
outputs = keras.layers.Dense(1, activation="sigmoid")(x)
model = keras.Model(inputs, outputs)
model.compile("adam", "binary_crossentropy", metrics=[keras.metrics.AUC(name="auc")])
model.fit(ds, epochs=4, verbose=2)
