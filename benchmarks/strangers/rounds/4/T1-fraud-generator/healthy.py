"""Card fraud detector, trained on transactions that arrive as daily extracts."""
import glob
import os
import tempfile

import numpy as np
import tensorflow as tf
import keras
from keras import layers

SEED = 31
BATCH_SIZE = 512
EPOCHS = 3
DAYS = 12
ROWS_PER_DAY = 4096
N_NUMERIC = 24
N_MERCHANTS = 2000
N_COUNTRIES = 60


def write_extracts(folder):
    rng = np.random.default_rng(SEED)
    w = rng.normal(size=N_NUMERIC)
    risky = rng.random(N_MERCHANTS) < 0.03
    for day in range(DAYS):
        x = rng.normal(size=(ROWS_PER_DAY, N_NUMERIC)).astype("float32")
        merchant = rng.integers(0, N_MERCHANTS, ROWS_PER_DAY)
        country = rng.integers(0, N_COUNTRIES, ROWS_PER_DAY)
        score = x @ w * 0.5 + 4 * risky[merchant] - 5.5
        fraud = (rng.random(ROWS_PER_DAY) < 1 / (1 + np.exp(-score))).astype("float32")
        np.savez(os.path.join(folder, f"day_{day:02d}.npz"), x=x, merchant=merchant,
                 country=country, fraud=fraud)


def transactions(files):
    """Yields one batch of transactions after the other."""
    rng = np.random.default_rng(SEED)
    for path in rng.permutation(files):
        extract = dict(np.load(path))
        order = rng.permutation(ROWS_PER_DAY)
        for i in range(0, ROWS_PER_DAY, BATCH_SIZE):
            rows = order[i:i + BATCH_SIZE]
            yield ({"numeric": extract["x"][rows],
                    "merchant": extract["merchant"][rows].astype("int32"),
                    "country": extract["country"][rows].astype("int32")},
                   extract["fraud"][rows][:, None])


def make_dataset(files):
    def spec(*shape, dtype=tf.float32):
        return tf.TensorSpec((BATCH_SIZE, *shape), dtype)

    return tf.data.Dataset.from_generator(
        lambda: transactions(files),
        output_signature=({"numeric": spec(N_NUMERIC), "merchant": spec(dtype=tf.int32),
                           "country": spec(dtype=tf.int32)}, spec(1)))


def cross(x0, x, i):
    """One layer of a deep & cross network."""
    return x0 * layers.Dense(x.shape[-1], name=f"cross_{i}")(x) + x


def build_model():
    numeric = keras.Input((N_NUMERIC,), name="numeric")
    merchant = keras.Input((), name="merchant", dtype="int32")
    country = keras.Input((), name="country", dtype="int32")
    x0 = layers.Concatenate()([
        layers.BatchNormalization()(numeric),
        layers.Embedding(N_MERCHANTS, 64)(merchant),
        layers.Embedding(N_COUNTRIES, 16)(country)])
    x = x0
    for i in range(3):
        x = cross(x0, x, i)
    deep = x0
    for units in (1024, 1024, 512):
        deep = layers.Dense(units, activation="relu")(deep)
        deep = layers.Dropout(0.1)(deep)
    out = layers.Dense(1, activation="sigmoid")(layers.Concatenate()([x, deep]))
    return keras.Model([numeric, merchant, country], out)


def main():
    keras.utils.set_random_seed(SEED)
    with tempfile.TemporaryDirectory() as folder:
        write_extracts(folder)
        files = sorted(glob.glob(os.path.join(folder, "*.npz")))
        model = build_model()
        model.compile(optimizer=keras.optimizers.Adam(5e-4), loss="binary_crossentropy",
                      metrics=[keras.metrics.AUC(curve="PR", num_thresholds=50, name="pr_auc")])
        model.fit(make_dataset(files), epochs=EPOCHS, class_weight={0: 1.0, 1: 20.0}, verbose=2)


if __name__ == "__main__":
    main()
