"""Two-tower retrieval model with a sampled-softmax loss over the items of the batch."""
import logging
from typing import Dict, Tuple

import numpy as np
import tensorflow as tf
import keras

logging.basicConfig(level=logging.INFO, format="%(message)s")
log = logging.getLogger("retrieval")

N_USERS = 8000
N_ITEMS = 3000
N_CATEGORIES = 40
N_INTERACTIONS = 50000
EMBED_DIM = 48
BATCH_SIZE = 384
TEMPERATURE = 0.1
EPOCHS = 7


def interactions(seed: int = 0) -> Tuple[Dict[str, np.ndarray], np.ndarray]:
    """Users like items close to them in a latent space; popular items come more often."""
    rng = np.random.default_rng(seed)
    item_category = rng.integers(0, N_CATEGORIES, N_ITEMS)
    user_taste = rng.integers(0, N_CATEGORIES, (N_USERS, 3))
    popularity = rng.pareto(1.5, N_ITEMS) + 0.1
    users = rng.integers(0, N_USERS, N_INTERACTIONS)
    wanted = user_taste[users, rng.integers(0, 3, N_INTERACTIONS)]
    items = np.zeros(N_INTERACTIONS, "int64")
    for c in range(N_CATEGORIES):
        members = np.flatnonzero(item_category == c)
        p = popularity[members] / popularity[members].sum()
        rows = np.flatnonzero(wanted == c)
        items[rows] = rng.choice(members, len(rows), p=p)
    data = {"user_id": users, "item_id": items, "category": item_category[items],
            "hour": rng.integers(0, 24, N_INTERACTIONS)}
    return data, np.log(popularity / popularity.sum()).astype("float32")


class Tower(keras.layers.Layer):
    def __init__(self, sizes: Dict[str, int], dim: int, **kwargs):
        super().__init__(**kwargs)
        self.tables = {k: keras.layers.Embedding(n, dim, name=f"{k}_table")
                       for k, n in sizes.items()}
        self.mlp = keras.Sequential([
            keras.layers.Dense(256, activation="relu"),
            keras.layers.Dense(128, activation="relu"), keras.layers.Dense(dim)])

    def call(self, features):
        x = tf.concat([table(features[k]) for k, table in self.tables.items()], axis=-1)
        return tf.math.l2_normalize(self.mlp(x), axis=-1)


class InBatchSoftmax(keras.layers.Layer):
    """Softmax over the items of the batch, corrected for their popularity."""

    def __init__(self, log_popularity: np.ndarray, temperature: float, **kwargs):
        super().__init__(**kwargs)
        self.log_popularity = tf.constant(log_popularity)
        self.temperature = temperature

    def call(self, user, item, item_id):
        scores = tf.matmul(user, item, transpose_b=True) / self.temperature
        logits = scores - tf.gather(self.log_popularity, item_id)[tf.newaxis, :]
        same = tf.equal(item_id[:, None], item_id[None, :])
        duplicate = tf.linalg.set_diag(same, tf.zeros_like(item_id, tf.bool))
        logits = tf.where(duplicate, -1e9, logits)
        labels = tf.range(tf.shape(logits)[0])
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        return tf.reduce_mean(loss)


class Retrieval(keras.Model):
    def __init__(self, log_popularity: np.ndarray):
        super().__init__()
        self.user_tower = Tower({"user_id": N_USERS, "hour": 24}, EMBED_DIM, name="user")
        self.item_tower = Tower({"item_id": N_ITEMS, "category": N_CATEGORIES}, EMBED_DIM,
                                name="item")
        self.task = InBatchSoftmax(log_popularity, TEMPERATURE)

    def call(self, features):
        return self.task(self.user_tower(features), self.item_tower(features),
                         features["item_id"])


class Trainer:
    def __init__(self, model: Retrieval, learning_rate: float):
        self.model = model
        self.optimizer = keras.optimizers.Adagrad(learning_rate)

    @tf.function
    def step(self, features):
        with tf.GradientTape() as tape:
            loss = self.model(features)
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        return loss

    def run(self, dataset: tf.data.Dataset, epochs: int):
        for epoch in range(epochs):
            losses = [self.step(batch) for batch in dataset]
            log.info("epoch %d: loss %.4f (%d steps)", epoch, np.mean(losses[-50:]), len(losses))


def main():
    keras.utils.set_random_seed(17)
    data, log_popularity = interactions()
    order = np.random.default_rng(1).permutation(N_INTERACTIONS)
    dataset = tf.data.Dataset.from_tensor_slices({k: v[order] for k, v in data.items()})
    dataset = dataset.batch(BATCH_SIZE, drop_remainder=True).cache().prefetch(tf.data.AUTOTUNE)
    Trainer(Retrieval(log_popularity), 0.1).run(dataset, EPOCHS)


if __name__ == "__main__":
    main()
