"""Skip-gram word2vec."""
import collections

import keras
import numpy as np
import tensorflow as tf

VOCAB, DIM, WINDOW, BATCH = 20000, 32, 2, 128
rng = np.random.default_rng(0)
corpus = [f"w{i}" for i in np.minimum(rng.zipf(1.15, 60000), 60000)]

counts = collections.Counter(corpus).most_common(VOCAB - 1)
index = {word: i + 1 for i, (word, _) in enumerate(counts)}
tokens = np.array([index.get(w, 0) for w in corpus], "int64")

pairs = np.concatenate([
    np.stack([tokens[WINDOW:-WINDOW], np.roll(tokens, shift)[WINDOW:-WINDOW]], 1)
    for shift in (-2, -1, 1, 2)
])
rng.shuffle(pairs)
ds = tf.data.Dataset.from_tensor_slices((pairs[:, 0], pairs[:, 1])).batch(BATCH, drop_remainder=True).prefetch(4)

embeddings = tf.Variable(tf.random.uniform((VOCAB, DIM), -1, 1))
weights = tf.Variable(tf.random.truncated_normal((VOCAB, DIM), stddev=DIM**-0.5))
biases = tf.Variable(tf.zeros(VOCAB))
variables = [embeddings, weights, biases]
optimizer = keras.optimizers.SGD(0.5)


@tf.function
def train_step(center, context):
    with tf.GradientTape() as tape:
        h = tf.nn.embedding_lookup(embeddings, center)
        loss = tf.nn.sampled_softmax_loss(weights, biases, context[:, None], h, 64, VOCAB)
        loss = tf.reduce_mean(loss)
    grads = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(grads, variables))
    return loss


total = 0.0
for step, (center, context) in enumerate(ds.take(150)):
    total += train_step(center, context)
    if step % 50 == 49:
        print("step", step + 1, "loss", float(total) / 50)
        total = 0.0
