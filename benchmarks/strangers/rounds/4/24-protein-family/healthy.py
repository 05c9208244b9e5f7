"""Protein family classification from amino-acid sequences (dilated 1-D CNN, ProtCNN-like)."""
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

AMINO = "ACDEFGHIKLMNPQRSTVWY"
N_FAMILIES = 20
MAX_LEN = 96
BATCH_SIZE = 32
STEPS = 250
EVAL_EVERY = 125
SEED = 123

keras.utils.set_random_seed(SEED)


def random_families(n, rng):
    """Each family has three conserved motifs, placed in a random background."""
    letters = np.array(list(AMINO))
    motifs = [["".join(rng.choice(letters, 8)) for _ in range(3)] for _ in range(N_FAMILIES)]
    sequences, families = [], []
    for _ in range(n):
        family = int(rng.integers(N_FAMILIES))
        length = int(rng.integers(60, MAX_LEN))
        seq = rng.choice(letters, length)
        for k, motif in enumerate(motifs[family]):
            at = int(rng.integers(k * 20, k * 20 + 10))
            keep = rng.random(8) < 0.85
            seq[at : at + 8] = np.where(keep, list(motif), seq[at : at + 8])
        sequences.append("".join(seq))
        families.append(family)
    return np.array(sequences), np.array(families, "int32")


def encode(sequences):
    table = {a: i + 1 for i, a in enumerate(AMINO)}
    out = np.zeros((len(sequences), MAX_LEN), "int32")
    for i, s in enumerate(sequences):
        out[i, : len(s)] = [table[a] for a in s]
    return out


def get_dataset(tokens, families, shuffle_buffer=None):
    ds = tf.data.Dataset.from_tensor_slices((tokens, families))
    if shuffle_buffer:
        ds = ds.shuffle(shuffle_buffer).repeat()
    return ds.batch(BATCH_SIZE).prefetch(tf.data.AUTOTUNE)


class ResidualBlock(keras.layers.Layer):
    def __init__(self, filters, dilation, **kwargs):
        super().__init__(**kwargs)
        self.norm = keras.layers.BatchNormalization()
        self.dilated = keras.layers.Conv1D(filters // 2, 5, dilation_rate=dilation, padding="same")
        self.expand = keras.layers.Conv1D(filters, 1, padding="same")

    def call(self, x, training=False):
        y = keras.activations.relu(self.norm(x, training=training))
        y = keras.activations.relu(self.dilated(y))
        return x + self.expand(y)


class ProtCNN(keras.Model):
    def __init__(self, filters=32):
        super().__init__()
        self.embed = keras.layers.Embedding(len(AMINO) + 1, filters)
        self.blocks = [ResidualBlock(filters, d) for d in (1, 2, 4)]
        self.pool = keras.layers.GlobalMaxPooling1D()
        self.out = keras.layers.Dense(N_FAMILIES)

    def call(self, tokens, training=False):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, training=training)
        return self.out(self.pool(x))


model = ProtCNN()
optimizer = keras.optimizers.AdamW(2e-3, weight_decay=1e-4)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(tokens, families):
    with tf.GradientTape() as tape:
        logits = model(tokens, training=True)
        loss = loss_fn(families, logits)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def evaluate(ds):
    metric = keras.metrics.SparseCategoricalAccuracy()
    for tokens, families in ds:
        metric.update_state(families, model(tokens, training=False))
    return float(metric.result())


def main():
    sequences, families = random_families(16000, np.random.default_rng(SEED))
    tokens = encode(sequences)
    train_ds = get_dataset(tokens[:-256], families[:-256], shuffle_buffer=15000)
    test_ds = get_dataset(tokens[-256:], families[-256:])

    batches = iter(train_ds)
    start, losses = time.time(), []
    for step in range(1, STEPS + 1):
        batch_tokens, batch_families = next(batches)
        losses.append(train_step(batch_tokens, batch_families))
        if step % EVAL_EVERY == 0:
            print(
                f"step {step}: loss {np.mean(losses):.4f}, test accuracy {evaluate(test_ds):.3f}, "
                f"{time.time() - start:.1f} s"
            )
            losses = []


if __name__ == "__main__":
    main()
