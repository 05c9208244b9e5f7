import logging
import numpy as np
import tensorflow as tf

logging.basicConfig(format="%(levelname)s %(message)s", level=logging.INFO)
log = logging.getLogger("scoring")


class ChurnScorer:
    def __init__(self, n_features=60):
        inp = tf.keras.Input((n_features,))
        h = inp
        for i in range(8):
            r = tf.keras.layers.Dense(96, activation="relu")(h)
            r = tf.keras.layers.BatchNormalization()(r)
            h = tf.keras.layers.Add()([h, r]) if i else r
        self.model = tf.keras.Model(inp, tf.keras.layers.Dense(1, activation="sigmoid")(h))
        self.model.compile("adam", "binary_crossentropy")

    def fit(self, x, y):
        self.model.fit(x, y, batch_size=128, epochs=5, verbose=0)
        return self

    def score_one(self, row):
        x = tf.convert_to_tensor(row[np.newaxis, :])
        return float(self.model(x, training=False)[0, 0])

    def score(self, rows):
        return [self.score_one(row) for row in rows]


def customers(n, rng, w):
    x = rng.normal(size=(n, 60)).astype(np.float32)
    y = (x @ w + rng.normal(size=n) > 0).astype(np.float32)
    return x, y


def main():
    rng = np.random.default_rng(0)
    w = rng.normal(size=60) / 4
    x, y = customers(20000, rng, w)
    scorer = ChurnScorer().fit(x, y)
    log.info("trained on %d customers", len(x))
    x, y = customers(1800, rng, w)
    scores = scorer.score(x)
    risky = np.argsort(scores)[::-1][:10]
    log.info("scored %d, riskiest: %s", len(scores), risky.tolist())
    log.info("hit rate %.3f", np.mean((np.array(scores) > .5) == (y > .5)))


main()
