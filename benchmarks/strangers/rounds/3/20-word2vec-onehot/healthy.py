# word2vec homework: skip-gram with negative sampling
import numpy as np
import tensorflow as tf

VOCAB = 5000
DIM = 100
BATCH = 256
NEGATIVE = 32
LR = 0.5

rng = np.random.default_rng(0)
corpus = rng.zipf(1.3, 200000) % VOCAB

W_in = tf.Variable(tf.random.uniform((VOCAB, DIM), -0.5 / DIM, 0.5 / DIM))
W_out = tf.Variable(tf.zeros((VOCAB, DIM)))


def make_batch():
    pos = rng.integers(2, len(corpus) - 2, BATCH)
    offset = rng.choice([-2, -1, 1, 2], BATCH)
    negatives = rng.integers(0, VOCAB, NEGATIVE)
    return corpus[pos], corpus[pos + offset], negatives


@tf.function
def train_step(center, context, negatives):
    with tf.GradientTape() as tape:
        v = tf.nn.embedding_lookup(W_in, center)
        u = tf.nn.embedding_lookup(W_out, context)
        n = tf.nn.embedding_lookup(W_out, negatives)
        positive = tf.reduce_sum(u * v, axis=1)
        negative = tf.matmul(v, n, transpose_b=True)
        loss = -tf.reduce_mean(tf.math.log_sigmoid(positive))
        loss -= tf.reduce_mean(tf.reduce_sum(tf.math.log_sigmoid(-negative), axis=1))
    g_in, g_out = tape.gradient(loss, [W_in, W_out])
    W_in.scatter_sub(tf.IndexedSlices(LR * g_in.values, g_in.indices))
    W_out.scatter_sub(tf.IndexedSlices(LR * g_out.values, g_out.indices))
    return loss


losses = []
for it in range(250):
    center, context, negatives = make_batch()
    loss = train_step(tf.constant(center), tf.constant(context), tf.constant(negatives))
    losses.append(loss)
    if it % 50 == 0:
        print(it, float(loss))
