"""Skip-gram word2vec with NCE loss, ported from an old TF1 code base (tf.compat.v1 graph and session)."""
import collections
import os
import re
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()

SEED = 4
VOCAB, DIM = 12_000, 128
BATCH, WINDOW, NEGATIVES = 3072, 4, 64
STEPS = 400
LR_START, LR_END = 1.0, 0.05


def make_text(n_words=250_000):
    rng = np.random.default_rng(SEED)
    syll = np.array([a + b for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "ai")])
    lexicon = np.array(["".join(rng.choice(syll, rng.integers(2, 5))) for _ in range(20_000)])
    ids = np.minimum(rng.zipf(1.15, n_words) - 1, len(lexicon) - 1)
    words = lexicon[ids]
    stops = rng.random(n_words) < 0.08
    return " ".join(w + ("." if s else "") for w, s in zip(words, stops))


def tokenize(text):
    return re.findall(r"[a-z]+|[.]", text.lower())


def encode(tokens):
    counts = collections.Counter(tokens).most_common(VOCAB - 1)
    index = {w: i + 1 for i, (w, _) in enumerate(counts)}
    freq = np.array([1] + [c for _, c in counts], "float64")
    ids = np.array([index.get(t, 0) for t in tokens], "int32")
    keep = np.minimum(1.0, np.sqrt(1e-3 / (freq / freq.sum())))         # subsampling of frequent words
    mask = np.random.default_rng(SEED).random(len(ids)) < keep[ids]
    return ids[mask]


def pair_batches(ids):
    """Skip-gram pairs with a random shrink of the window, as in the original word2vec."""
    rng = np.random.default_rng(SEED + 1)
    while True:
        centre = rng.integers(WINDOW, len(ids) - WINDOW, BATCH)
        span = rng.integers(1, WINDOW + 1, BATCH)
        offset = 1 + (rng.random(BATCH) * span).astype("int64")
        offset *= rng.choice([-1, 1], BATCH)
        yield ids[centre], ids[centre + offset][:, None]


class SkipGram:
    def __init__(self):
        self.centre = tf.placeholder(tf.int32, [BATCH], name="centre")
        self.context = tf.placeholder(tf.int32, [BATCH, 1], name="context")
        self.emb = tf.get_variable("emb", initializer=tf.random_uniform([VOCAB, DIM], -1, 1, seed=SEED))
        self.w = tf.get_variable("nce_w", initializer=tf.truncated_normal([VOCAB, DIM], stddev=DIM ** -0.5))
        self.b = tf.get_variable("nce_b", initializer=tf.zeros([VOCAB]))
        self.lr = tf.get_variable("lr", initializer=LR_START, trainable=False)
        hidden = tf.nn.embedding_lookup(self.emb, self.centre)
        self.loss = tf.reduce_mean(tf.nn.nce_loss(
            weights=self.w, biases=self.b, labels=self.context, inputs=hidden,
            num_sampled=NEGATIVES, num_classes=VOCAB))
        self.train = tf.train.GradientDescentOptimizer(self.lr).minimize(self.loss)
        self.norm = tf.reduce_mean(tf.norm(hidden, axis=1))


def nearest(emb, ids, k=4):
    unit = emb / np.linalg.norm(emb, axis=1, keepdims=True)
    return np.argsort(-unit[ids] @ unit.T, axis=1)[:, 1:k + 1]


def main():
    ids = encode(tokenize(make_text()))
    tf.set_random_seed(SEED)
    model = SkipGram()
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        total, t0 = 0.0, time.time()
        for step, (centre, context) in enumerate(pair_batches(ids)):
            if step == STEPS:
                break
            rate = LR_START + (LR_END - LR_START) * step / STEPS
            sess.run(tf.assign(model.lr, rate))
            loss, norm, _ = sess.run([model.loss, model.norm, model.train],
                                     {model.centre: centre, model.context: context})
            total += loss
            if step % 80 == 79:
                print(f"step {step + 1} lr {rate:.3f} loss {total / 80:.3f} |v| {norm:.2f} "
                      f"{80 * BATCH / (time.time() - t0):.0f} pairs/s")
                total, t0 = 0.0, time.time()
        emb = sess.run(model.emb)
    print("neighbours of frequent words:", nearest(emb, np.arange(1, 4)).tolist())


if __name__ == "__main__":
    main()
