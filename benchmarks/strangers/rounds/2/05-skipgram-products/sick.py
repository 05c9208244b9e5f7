"""item2vec: skip-gram with negative sampling on shopping baskets, plain variables and SGD."""
import numpy as np
import tensorflow as tf

ITEMS, DIM, BATCH, NEG, STEPS = 60000, 48, 256, 8, 120
LR = 0.5
rng = np.random.default_rng(0)

# baskets: runs through a ring of products
centers = (rng.zipf(1.3, 60000) % ITEMS).astype("int32")
contexts = ((centers + rng.integers(1, 6, len(centers))) % ITEMS).astype("int32")

emb_in = tf.Variable(tf.random.uniform((ITEMS, DIM), -0.5 / DIM, 0.5 / DIM, seed=1), name="in")
emb_out = tf.Variable(tf.zeros((ITEMS, DIM)), name="out")


def nce_loss(center, context, negatives):
    v = tf.gather(emb_in, center)
    u = tf.gather(emb_out, context)
    n = tf.gather(emb_out, negatives)
    pos = tf.reduce_sum(v * u, -1)
    neg = tf.einsum("bd,bkd->bk", v, n)
    return -tf.reduce_mean(tf.math.log_sigmoid(pos) + tf.reduce_sum(tf.math.log_sigmoid(-neg), -1))


@tf.function
def step(center, context):
    negatives = tf.random.uniform((BATCH, NEG), 0, ITEMS, tf.int32)
    with tf.GradientTape() as tape:
        loss = nce_loss(center, context, negatives)
    grads = tape.gradient(loss, [emb_in, emb_out])
    for var, grad in zip([emb_in, emb_out], grads):
        grad = tf.convert_to_tensor(grad)
        var.assign_sub(LR * tf.clip_by_value(grad, -0.1, 0.1))
    return loss


ds = (tf.data.Dataset.from_tensor_slices((centers, contexts)).batch(BATCH, drop_remainder=True)
      .shuffle(300).repeat().prefetch(4).take(STEPS))
for i, (c, o) in enumerate(ds):
    loss = step(c, o)
    if i % 50 == 0:
        print(i, float(loss))
np.save("/dev/null", emb_in.numpy())
