"""Hotel booking demand: will this booking be cancelled?

Tabular baseline with entity embeddings for the categorical columns.
"""
import csv
import json
import os
import tempfile

import numpy as np
import tensorflow as tf
import keras
from keras import layers

SEED = 2024
BATCH_SIZE = 256
EPOCHS = 5
N_ROWS = 60000

keras.utils.set_random_seed(SEED)

NUMERIC = ["lead_time", "adults", "children", "stays_week", "stays_weekend",
           "previous_cancellations", "booking_changes", "days_waiting", "adr",
           "special_requests"]
CATEGORICAL = {"hotel": 2, "arrival_month": 12, "meal": 5, "country": 170,
               "market_segment": 8, "deposit_type": 3, "agent": 330, "company": 350,
               "room_type": 10, "customer_type": 4}

WORK_DIR = tempfile.mkdtemp(prefix="hotel_")


def make_csv(path, n_rows):
    rng = np.random.default_rng(SEED)
    num = np.abs(rng.normal(size=(n_rows, len(NUMERIC)))).astype("float32")
    num[:, 0] *= 90
    num[:, 8] = num[:, 8] * 50 + 60
    cat = np.stack([rng.integers(0, n, n_rows) for n in CATEGORICAL.values()], axis=1)
    logit = (0.01 * num[:, 0] + 1.2 * (cat[:, 5] == 1) - 0.7 * num[:, 9]
             + 0.05 * (cat[:, 3] % 7) - 0.8)
    y = (rng.random(n_rows) < 1 / (1 + np.exp(-logit))).astype(int)
    table = np.concatenate([num, cat, y[:, None]], axis=1)
    header = ",".join(NUMERIC + list(CATEGORICAL) + ["is_canceled"])
    np.savetxt(path, table, delimiter=",", fmt="%.3f", header=header, comments="")


def load(path):
    with open(path) as f:
        columns = next(csv.reader(f))
        table = np.loadtxt(f, delimiter=",", dtype="float32")
    values = {c: table[:, i] for i, c in enumerate(columns)}
    y = values.pop("is_canceled")
    x_num = np.stack([values[c] for c in NUMERIC], axis=1)
    x_cat = np.stack([values[c] for c in CATEGORICAL], axis=1).astype("int32")
    return x_num, x_cat, y


def build_model(normalizer):
    num_in = keras.Input((len(NUMERIC),), name="num")
    cat_in = keras.Input((len(CATEGORICAL),), dtype="int32", name="cat")
    parts = [normalizer(num_in)]
    for i, (name, size) in enumerate(CATEGORICAL.items()):
        dim = min(32, (size + 1) // 2)
        parts.append(layers.Embedding(size, dim, name=f"emb_{name}")(cat_in[:, i]))
    x = layers.Concatenate()(parts)
    for units in (512, 256, 128):
        x = layers.Dense(units)(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("relu")(x)
        x = layers.Dropout(0.2)(x)
    out = layers.Dense(1, activation="sigmoid")(x)
    return keras.Model([num_in, cat_in], out)


class TrainingMonitor(keras.callbacks.Callback):
    """Keeps a record of how the weights develop, to be plotted after the run."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.records = []

    def _describe(self):
        record = {}
        for layer in self.model.layers:
            for i, w in enumerate(layer.get_weights()):
                counts, _ = np.histogram(w, bins=30)
                record[f"{layer.name}/{i}"] = {
                    "mean": float(np.mean(w)), "std": float(np.std(w)),
                    "hist": counts.tolist()}
        return record

    def on_train_batch_end(self, batch, logs=None):
        self.records.append({"loss": float(logs["loss"]), "weights": self._describe()})

    def on_epoch_end(self, epoch, logs=None):
        with open(self.path, "a") as f:
            for record in self.records:
                f.write(json.dumps(record) + "\n")
        self.records = []


def main():
    path = os.path.join(WORK_DIR, "bookings.csv")
    make_csv(path, N_ROWS)
    x_num, x_cat, y = load(path)
    n_val = N_ROWS // 6
    normalizer = layers.Normalization()
    normalizer.adapt(x_num[n_val:])

    train = (tf.data.Dataset.from_tensor_slices(((x_num[n_val:], x_cat[n_val:]), y[n_val:]))
             .cache().shuffle(20000, seed=SEED)
             .batch(BATCH_SIZE, drop_remainder=True, num_parallel_calls=2)
             .prefetch(tf.data.AUTOTUNE))
    val = (tf.data.Dataset.from_tensor_slices(((x_num[:n_val], x_cat[:n_val]), y[:n_val]))
           .batch(2048).cache())

    model = build_model(normalizer)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy",
                  metrics=["accuracy"])
    model.fit(train, validation_data=val, epochs=EPOCHS, verbose=2,
              callbacks=[TrainingMonitor(os.path.join(WORK_DIR, "monitor.jsonl"))])


if __name__ == "__main__":
    main()
