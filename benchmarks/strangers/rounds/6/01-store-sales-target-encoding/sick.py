"""Daily store sales regression: pandas frame -> entity embeddings + numeric features, 4-fold CV (one fold trained here)."""
import os
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import pandas as pd
import keras
from keras import layers
from sklearn.model_selection import KFold

SEED = 11
N_STORES, N_ITEMS = 320, 900
NUMERIC = ["price", "promo", "temp", "dow_sin", "dow_cos", "competitor_km"]
BATCH = 1024
EPOCHS = 1
keras.utils.set_random_seed(SEED)


def make_frame(n=400_000):
    rng = np.random.default_rng(SEED)
    df = pd.DataFrame({
        "store": rng.integers(0, N_STORES, n),
        "item": rng.integers(0, N_ITEMS, n),
        "price": rng.gamma(2.0, 3.0, n),
        "promo": rng.random(n) < 0.15,
        "temp": rng.normal(14, 8, n),
        "competitor_km": rng.exponential(2.5, n),
        "dow": rng.integers(0, 7, n),
    })
    df["dow_sin"] = np.sin(2 * np.pi * df["dow"] / 7)
    df["dow_cos"] = np.cos(2 * np.pi * df["dow"] / 7)
    store_eff = rng.normal(0, 0.6, N_STORES)
    item_eff = rng.normal(0, 0.9, N_ITEMS)
    df["sales"] = (2.0 + store_eff[df["store"]] + item_eff[df["item"]] - 0.08 * df["price"]
                   + 0.7 * df["promo"] + rng.normal(0, 0.3, n))
    return df


class SalesBatches(keras.utils.PyDataset):
    """Serves shuffled batches out of the training part of the frame."""

    def __init__(self, frame, batch_size, shuffle=True, **kw):
        super().__init__(**kw)
        self.frame = frame.reset_index(drop=True)
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.order = np.arange(len(self.frame))
        self.rng = np.random.default_rng(SEED)
        self.numeric = self.frame[NUMERIC].to_numpy("float32")
        self.numeric = (self.numeric - self.numeric.mean(0)) / self.numeric.std(0)
        self.ids = self.frame[["store", "item"]].to_numpy("int32")
        self.target = self.frame["sales"].to_numpy("float32")

    def __len__(self):
        return len(self.frame) // self.batch_size

    def target_encoding(self):
        """Mean sales by (store, dow) and by item, joined back on the rows."""
        by_store = self.frame.groupby(["store", "dow"])["sales"].transform("mean")
        by_item = self.frame.groupby("item")["sales"].transform("mean")
        return np.stack([by_store, by_item], axis=1).astype("float32")

    def __getitem__(self, i):
        rows = self.order[i * self.batch_size:(i + 1) * self.batch_size]
        encoded = self.target_encoding()
        x = {
            "store": self.ids[rows, 0],
            "item": self.ids[rows, 1],
            "numeric": np.concatenate([self.numeric[rows], encoded[rows]], axis=1),
        }
        return x, self.target[rows]

    def on_epoch_end(self):
        if self.shuffle:
            self.rng.shuffle(self.order)


def build():
    store = keras.Input((), dtype="int32", name="store")
    item = keras.Input((), dtype="int32", name="item")
    numeric = keras.Input((len(NUMERIC) + 2,), name="numeric")
    x = layers.Concatenate()([
        layers.Embedding(N_STORES, 16)(store),
        layers.Embedding(N_ITEMS, 24)(item),
        layers.Dense(32, activation="relu")(numeric),
    ])
    skip = x = layers.Dense(320, activation="relu")(x)
    for _ in range(2):
        x = layers.Dense(320, activation="relu")(x)
        x = layers.LayerNormalization()(layers.add([x, skip]))
    out = layers.Dense(1)(x)
    model = keras.Model({"store": store, "item": item, "numeric": numeric}, out)
    model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
    return model


def main():
    df = make_frame()
    folds = list(KFold(4, shuffle=True, random_state=SEED).split(df))
    train_idx, valid_idx = folds[0]
    train = SalesBatches(df.iloc[train_idx], BATCH)
    valid = SalesBatches(df.iloc[valid_idx][:4096], 2048, shuffle=False)
    model = build()
    model.fit(train, validation_data=valid, epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
