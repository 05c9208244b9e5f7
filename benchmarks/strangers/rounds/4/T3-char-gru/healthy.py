"""Character-level language model (GRU) with a plain training loop."""
import math
import time

import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(55)

SEQ_LEN = 64
BATCH = 32
EMBED = 48
UNITS = 160
STEPS = 150
CLIP = 1.0


def make_text(n_sentences=3000):
    rng = np.random.default_rng(2)
    subjects = ["the cat", "a sailor", "my neighbour", "the old king", "nobody", "the wind"]
    verbs = ["sees", "follows", "forgets", "paints", "sells", "remembers"]
    objects = ["the sea", "a red house", "seven stones", "the long road", "an empty cup"]
    ends = [".", "!", ", again.", ", they say.", " at night."]
    return " ".join(
        " ".join([rng.choice(subjects), rng.choice(verbs), rng.choice(objects)])
        + rng.choice(ends) for _ in range(n_sentences))


class Corpus:
    def __init__(self, text):
        self.chars = sorted(set(text))
        lookup = {c: i for i, c in enumerate(self.chars)}
        self.ids = np.array([lookup[c] for c in text], "int32")
        self.rng = np.random.default_rng(3)

    def sample(self):
        starts = self.rng.integers(0, len(self.ids) - SEQ_LEN - 1, BATCH)
        rows = [self.ids[s:s + SEQ_LEN + 1] for s in starts]
        batch = np.stack(rows)
        return batch[:, :-1], batch[:, 1:]

    def decode(self, ids):
        return "".join(self.chars[i] for i in ids)


class CharModel(keras.Model):
    def __init__(self, vocab):
        super().__init__()
        self.embedding = layers.Embedding(vocab, EMBED)
        self.gru1 = layers.GRU(UNITS, return_sequences=True)
        self.gru2 = layers.GRU(UNITS, return_sequences=True)
        self.out = layers.Dense(vocab)

    def call(self, ids):
        x = self.embedding(ids)
        x = self.gru1(x)
        x = self.gru2(x)
        return self.out(x)


corpus = Corpus(make_text())
model = CharModel(len(corpus.chars))
optimizer = keras.optimizers.Adam(3e-3)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    grads = tape.gradient(loss, model.trainable_variables)
    grads, norm = tf.clip_by_global_norm(grads, CLIP)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss, norm


losses, norms = [], []
start = time.time()
for step in range(STEPS):
    x, y = corpus.sample()
    loss, norm = train_step(x, y)
    losses.append(loss.numpy())
    norms.append(float(norm))
    smooth = sum(losses[-20:]) / len(losses[-20:])
    print(f"\rstep {step}: loss {losses[-1]:.4f} (mean {smooth:.4f}, ppl {math.exp(smooth):.2f}), "
          f"gradient {norms[-1]:.3f}", end="", flush=True)

print(f"\n{STEPS} steps, {time.time() - start:.1f} s")
seed, _ = corpus.sample()
print(repr(corpus.decode(np.argmax(model(seed[:1])[0], axis=-1))))
