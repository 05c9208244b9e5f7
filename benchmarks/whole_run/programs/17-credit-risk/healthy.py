import numpy as np
import tensorflow as tf
from tensorflow import keras


class RiskModel:

    FEATURES = ["income", "debt", "age", "accounts", "late", "limit", "used", "years"]

    def __init__(self, seed=0):
        keras.utils.set_random_seed(seed)
        self.rng = np.random.default_rng(seed)

    def data(self, n):
        x = np.exp(self.rng.normal(size=(n, len(self.FEATURES)))) * [4e4, 1e4, 40, 3, 1, 5e3, 2e3, 6]
        score = np.log(x[:, 1] / x[:, 0]) + 0.7 * np.log(x[:, 4] + .1) - 0.3 * np.log(x[:, 7])
        y = (score + self.rng.normal(size=n) * .3 > np.median(score)).astype("float32")
        return x.astype("float32"), y

    def build(self, train_ds):
        norm = keras.layers.Normalization()
        norm.adapt(train_ds.map(lambda x, y: x).batch(4096))
        inp = keras.Input((len(self.FEATURES),))
        h = norm(inp)
        for w in (64, 64, 32):
            h = keras.layers.Dense(w, activation="relu")(h)
        self.model = keras.Model(inp, keras.layers.Dense(1, activation="sigmoid")(h))
        self.model.compile(optimizer="adam", loss="binary_crossentropy",
                           metrics=[keras.metrics.AUC(name="auc")])

    def run(self):
        x, y = self.data(40000)
        xt, yt = self.data(6000)
        train_ds = tf.data.Dataset.from_tensor_slices((x, y))
        self.build(train_ds)
        h = self.model.fit(train_ds.shuffle(5000).batch(128), epochs=20,
                           validation_data=(xt, yt), verbose=0)
        print("auc", ["%.3f" % v for v in h.history["val_auc"]])


if __name__ == "__main__":
    RiskModel().run()
