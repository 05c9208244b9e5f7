"""Hyper-parameter search with k-fold CV for a churn model; the samples come from an HDF5 export.

Every (learning rate, batch size) candidate is scored on three folds, the best one is refitted and saved."""
import itertools
import os
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import h5py
import numpy as np
import keras
from keras import layers
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

SEED = 31
N, N_EVENTS, N_FIELDS = 8_192, 48, 10       # customers x weeks x fields
GRID = {"lr": [6e-3, 2e-3, 6e-4], "batch_size": [256]}
WIDTH = 48
EPOCHS, FOLDS = 1, 4


def export(path):
    """What the warehouse job would deliver: one float16 data set, chunked by customer, and labels."""
    rng = np.random.default_rng(SEED)
    trend = rng.normal(0, 1, (N, 1, 1))
    weeks = np.linspace(0, 1, N_EVENTS)[None, :, None]
    x = trend * weeks + rng.normal(0, 1.0, (N, N_EVENTS, N_FIELDS))
    score = 1.5 * trend[:, 0, 0] + 2.0 * x[:, -8:, 0].mean(1) - 2.0 * x[:, -8:, 3].mean(1)
    y = rng.random(N) < 1 / (1 + np.exp(-(score - 1.0)))
    with h5py.File(path, "w") as f:
        f.create_dataset("weeks", data=x.astype("float16"), chunks=(256, N_EVENTS, N_FIELDS), compression="lzf")
        f.create_dataset("churned", data=y.astype("int8"))


def load(path):
    with h5py.File(path, "r") as f:
        return f["weeks"][:].astype("float32"), f["churned"][:].astype("float32")


def build(width):
    inp = keras.Input((N_EVENTS, N_FIELDS))
    x = layers.Conv1D(width, 5, padding="causal", activation="relu")(inp)
    for _ in range(3):
        y = layers.Conv1D(width, 3, padding="causal", activation="relu")(x)
        x = layers.LayerNormalization()(layers.add([x, y]))
    x = layers.Concatenate()([layers.GlobalAveragePooling1D()(x), x[:, -1]])
    out = layers.Dense(1)(layers.Dropout(0.3, seed=SEED)(x))
    model = keras.Model(inp, out)
    model.compile(optimizer=keras.optimizers.Adam(),
                  loss=keras.losses.BinaryCrossentropy(from_logits=True), jit_compile=False)
    return model


class Candidate:
    """One compiled model for the whole search: a trial puts back the first weights and an empty optimizer."""

    def __init__(self):
        self.model = build(WIDTH)
        self.model.optimizer.build(self.model.trainable_variables)
        self.start = self.model.get_weights()

    def restart(self, lr):
        self.model.set_weights(self.start)
        for v in self.model.optimizer.variables:
            v.assign(np.zeros(v.shape, v.dtype))
        self.model.optimizer.learning_rate = lr
        return self.model


def cross_validate(candidate, x, y, lr, batch_size):
    scores = []
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    for train, valid in folds.split(x, y):
        model = candidate.restart(lr)
        model.fit(x[train], y[train], batch_size=batch_size, epochs=EPOCHS, verbose=0)
        logits = model.predict(x[valid], batch_size=1024, verbose=0).ravel()
        scores.append(roc_auc_score(y[valid], logits))
    return float(np.mean(scores))


def main():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "churn.h5")
        export(path)
        x, y = load(path)
        mean, std = x.mean((0, 1)), x.std((0, 1))
        x = (x - mean) / std
        keras.utils.set_random_seed(SEED)
        candidate, results = Candidate(), {}
        for lr, batch_size in itertools.product(*GRID.values()):
            score = results[lr, batch_size] = cross_validate(candidate, x, y, lr, batch_size)
            print(f"lr {lr:g} batch size {batch_size}: AUC {score:.4f}", flush=True)
        lr, batch_size = max(results, key=results.get)
        model = candidate.restart(lr)
        model.fit(x, y, batch_size=batch_size, epochs=1, verbose=2)
        model.save(os.path.join(tmp, "churn.keras"))
        print("chosen", lr, batch_size)


if __name__ == "__main__":
    main()
