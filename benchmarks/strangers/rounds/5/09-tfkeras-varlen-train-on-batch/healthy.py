"""Tagging of variable-length peptide chains, tf_keras with train_on_batch.

Chains are sorted into batches of like length; each batch is padded to its own longest chain.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tf_keras as keras
from tf_keras import layers

AMINO, STATES, BATCH = 21, 3, 24
CHAINS, EPOCHS = 24 * 40, 3
SHORTEST, LONGEST = 40, 260


def chains(rng):
    """A hidden three-state walk emits the residues."""
    emit = rng.dirichlet(np.full(AMINO - 1, 0.4), STATES)
    xs, ys = [], []
    for _ in range(CHAINS):
        n = int(np.clip(rng.gamma(3.0, 40.0), SHORTEST, LONGEST))
        switch = rng.random(n) < 0.12
        y = np.cumsum(switch * rng.integers(1, STATES, n)) % STATES
        u = rng.random(n)
        x = (np.cumsum(emit, axis=1)[y] < u[:, None]).sum(axis=1) + 1
        xs.append(np.minimum(x, AMINO - 1).astype("int32"))
        ys.append(y.astype("int32"))
    return xs, ys


def bucketed(xs, ys, rng):
    """Batches of like length in a random order, each padded to its longest."""
    length = np.array([len(x) for x in xs])
    order = np.argsort(length + rng.uniform(0, 8, len(xs)), kind="stable")
    groups = order.reshape(-1, BATCH)
    for g in rng.permutation(len(groups)):
        sel = groups[g]
        longest = length[sel].max()
        x = np.zeros((BATCH, longest), "int32")
        y = np.zeros((BATCH, longest), "int32")
        w = np.zeros((BATCH, longest), "float32")
        for k, i in enumerate(sel):
            n = length[i]
            x[k, :n], y[k, :n], w[k, :n] = xs[i], ys[i], 1.0
        yield x, y, w


def unit(x, filters, rate):
    y = layers.Conv1D(filters, 7, padding="same", dilation_rate=rate, activation="relu")(x)
    y = layers.LayerNormalization()(y)
    return layers.Add()([x, layers.Dense(filters)(y)])


def build_model():
    ids = keras.Input((None,), dtype="int32")
    x = layers.Embedding(AMINO, 96)(ids)
    for rate in (1, 2, 4, 8, 1):
        x = unit(x, 96, rate)
    return keras.Model(ids, layers.Dense(STATES)(x))


def main():
    keras.utils.set_random_seed(13)
    rng = np.random.default_rng(13)
    xs, ys = chains(rng)
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        weighted_metrics=["accuracy"],
    )
    for epoch in range(EPOCHS):
        model.reset_metrics()
        for x, y, w in bucketed(xs, ys, rng):
            logs = model.train_on_batch(x, y, sample_weight=w, reset_metrics=False, return_dict=True)
        print(f"epoch {epoch}: " + " ".join(f"{k} {v:.4f}" for k, v in logs.items()))


if __name__ == "__main__":
    main()
