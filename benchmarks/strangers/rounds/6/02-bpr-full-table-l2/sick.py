"""Implicit-feedback recommender: BPR matrix factorisation with item side features, trained on (user, pos, neg) triples."""
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf

SEED = 5
N_USERS, N_ITEMS, N_TAGS = 180_000, 60_000, 64
DIM = 32
BATCH = 8192
STEPS = 320
LR = 0.08
L2 = 1e-5

tf.keras.utils.set_random_seed(SEED)


def make_interactions(n=1_500_000):
    rng = np.random.default_rng(SEED)
    users = rng.integers(0, N_USERS, n)
    items = np.minimum(rng.zipf(1.25, n) - 1, N_ITEMS - 1)      # long tail
    return users.astype("int32"), items.astype("int32")


def triples(users, items):
    """(user, positive, uniformly drawn negative), reshuffled by chunks."""
    ds = tf.data.Dataset.from_tensor_slices((users, items))
    ds = ds.batch(BATCH, drop_remainder=True).shuffle(183, seed=SEED).repeat()

    def with_negatives(u, pos):
        neg = tf.random.uniform(tf.shape(pos), 0, N_ITEMS, dtype=tf.int32)
        return u, pos, neg

    return ds.map(with_negatives, num_parallel_calls=2).prefetch(2)


class BPR(tf.Module):
    def __init__(self, tags):
        super().__init__()
        init = tf.random.Generator.from_seed(SEED)
        self.tags = tf.constant(tags)
        self.user = tf.Variable(init.normal([N_USERS, DIM], stddev=0.05), name="user_table")
        self.item = tf.Variable(init.normal([N_ITEMS, DIM], stddev=0.05), name="item_table")
        self.bias = tf.Variable(tf.zeros([N_ITEMS]), name="item_bias")
        self.tag_proj = tf.Variable(init.normal([N_TAGS, DIM], stddev=0.05), name="tag_projection")

    def item_vec(self, idx):
        side = tf.gather(self.tags, idx) @ self.tag_proj
        return tf.gather(self.item, idx) + side

    def __call__(self, u, pos, neg):
        uv = tf.gather(self.user, u)
        pv, nv = self.item_vec(pos), self.item_vec(neg)
        x_pos = tf.reduce_sum(uv * pv, axis=1) + tf.gather(self.bias, pos)
        x_neg = tf.reduce_sum(uv * nv, axis=1) + tf.gather(self.bias, neg)
        return x_pos - x_neg, (uv, pv, nv)


class SGD:
    """Plain SGD that leaves untouched rows alone when a gradient is sparse."""

    def __init__(self, lr):
        self.lr = lr

    def apply(self, grads, variables):
        for g, v in zip(grads, variables):
            if isinstance(g, tf.IndexedSlices):
                v.scatter_sub(tf.IndexedSlices(self.lr * g.values, g.indices))
            else:
                v.assign_sub(self.lr * tf.convert_to_tensor(g))


def auc(model, users, items, rng, n=4000):
    pick = rng.integers(0, len(users), n)
    neg = rng.integers(0, N_ITEMS, n).astype("int32")
    diff, _ = model(tf.constant(users[pick]), tf.constant(items[pick]), tf.constant(neg))
    return float(tf.reduce_mean(tf.cast(diff > 0, tf.float32)))


def main():
    users, items = make_interactions()
    tags = (np.random.default_rng(1).random((N_ITEMS, N_TAGS)) < 0.06).astype("float32")
    model = BPR(tags)
    opt = SGD(LR * BATCH)
    variables = list(model.trainable_variables)

    @tf.function
    def train_step(u, pos, neg):
        with tf.GradientTape() as tape:
            diff, rows = model(u, pos, neg)
            loss = tf.reduce_mean(tf.nn.softplus(-diff))
            loss += L2 * tf.add_n([tf.nn.l2_loss(v) for v in variables])
        grads = tape.gradient(loss, variables)
        opt.apply(grads, variables)
        return loss

    rng = np.random.default_rng(3)
    t0 = time.time()
    for step, (u, pos, neg) in enumerate(triples(users, items).take(STEPS)):
        loss = train_step(u, pos, neg)
        if step % 80 == 79:
            print(f"step {step + 1} loss {float(loss):.4f} auc {auc(model, users, items, rng):.3f} "
                  f"({time.time() - t0:.1f} s)")


if __name__ == "__main__":
    main()
