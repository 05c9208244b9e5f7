"""Two-tower recommender on implicit feedback; an old TF1 graph kept alive with compat.v1.

Batches are fed by hand through feed_dict; the other items of a batch are the negatives.
"""
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

USERS, ITEMS, FEATURES = 4000, 2500, 64
BATCH, STEPS, REPORT = 768, 360, 40
HIDDEN = (384, 256, 64)


def interactions(rng):
    """Users with a taste vector choose items of a like vector."""
    taste = rng.normal(size=(USERS, 8))
    kind = rng.normal(size=(ITEMS, 8))
    side_u = np.tanh(taste @ rng.normal(size=(8, FEATURES))).astype("float32")
    side_i = np.tanh(kind @ rng.normal(size=(8, FEATURES))).astype("float32")
    users = rng.integers(0, USERS, 60000).astype("int32")
    candidates = rng.integers(0, ITEMS, (60000, 6))
    score = np.einsum("nd,nkd->nk", taste[users], kind[candidates])
    items = candidates[np.arange(60000), score.argmax(1)].astype("int32")
    return users, items, side_u, side_i


def tower(ids, side, rows, name):
    with tf.variable_scope(name):
        table = tf.get_variable("table", (rows, 64), initializer=tf.random_normal_initializer(0, 0.05))
        x = tf.concat([tf.nn.embedding_lookup(table, ids), tf.gather(side, ids)], axis=1)
        width = 64 + FEATURES
        for k, units in enumerate(HIDDEN):
            w = tf.get_variable(f"w{k}", (width, units), initializer=tf.glorot_uniform_initializer())
            b = tf.get_variable(f"b{k}", (units,), initializer=tf.zeros_initializer())
            x = tf.nn.xw_plus_b(x, w, b)
            if k < len(HIDDEN) - 1:
                x = tf.nn.relu(x)
            width = units
        return tf.nn.l2_normalize(x, axis=1)


def build(side_u, side_i):
    users = tf.placeholder(tf.int32, (None,), "users")
    items = tf.placeholder(tf.int32, (None,), "items")
    rate = tf.placeholder(tf.float32, (), "rate")
    u = tower(users, tf.constant(side_u), USERS, "user")
    v = tower(items, tf.constant(side_i), ITEMS, "item")
    logits = tf.matmul(u, v, transpose_b=True) / 0.1
    same = tf.equal(items[None, :], items[:, None])
    logits -= 1e9 * tf.cast(same & ~tf.eye(tf.shape(items)[0], dtype=tf.bool), tf.float32)
    labels = tf.range(tf.shape(items)[0])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(rate).minimize(loss, global_step=step)
    return dict(users=users, items=items, rate=rate, loss=loss, train=train_op)


def train():
    rng = np.random.default_rng(21)
    users, items, side_u, side_i = interactions(rng)
    net = build(side_u, side_i)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        tf.get_default_graph().finalize()
        order = rng.permutation(len(users))
        losses, begin = [], time.time()
        for step in range(STEPS):
            at = (step * BATCH) % (len(order) - BATCH)
            sel = order[at:at + BATCH]
            feed = {net["users"]: users[sel], net["items"]: items[sel],
                    net["rate"]: 1e-3 * min(1.0, (step + 1) / 20)}
            _, loss = sess.run([net["train"], net["loss"]], feed)
            losses.append(loss)
            if (step + 1) % REPORT == 0:
                print(f"{step + 1:4d} loss {np.mean(losses[-REPORT:]):.4f} {time.time() - begin:.1f}s")


if __name__ == "__main__":
    train()
