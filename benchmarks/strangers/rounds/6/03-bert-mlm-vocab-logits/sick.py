"""Masked-language-model pretraining of a small BERT on a made-up corpus (keras.Model with its own train_step)."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
import keras
from keras import layers

SEED = 3
VOCAB = 16_000
SEQ = 64
N_MASK = 10                       # predictions per sequence (15 %)
DIM, HEADS, DEPTH, FFN = 192, 4, 2, 640
BATCH = 16
STEPS = 62
MASK_ID, SPECIAL = 3, 5
keras.utils.set_random_seed(SEED)


def make_corpus(n_docs=1200):
    """Markov-ish token streams with a Zipf unigram, cut into SEQ-long windows."""
    rng = np.random.default_rng(SEED)
    base = np.minimum(rng.zipf(1.2, (n_docs, SEQ)), VOCAB - SPECIAL - 1) + SPECIAL
    follow = rng.permutation(VOCAB)
    for t in range(1, SEQ):
        take = rng.random(n_docs) < 0.5
        base[take, t] = np.maximum(follow[base[take, t - 1]], SPECIAL)
    return base.astype("int32")


def mask_tokens(tokens):
    """80/10/10 masking with a fixed number of positions, as in the BERT data pipeline."""
    positions = tf.sort(tf.random.shuffle(tf.range(SEQ))[:N_MASK])
    labels = tf.gather(tokens, positions)
    dice = tf.random.uniform([N_MASK])
    random_ids = tf.random.uniform([N_MASK], SPECIAL, VOCAB, dtype=tf.int32)
    new = tf.where(dice < 0.8, MASK_ID, tf.where(dice < 0.9, random_ids, labels))
    inputs = tf.tensor_scatter_nd_update(tokens, positions[:, None], new)
    return {"inputs": inputs, "positions": positions, "labels": labels}


def dataset(tokens):
    ds = tf.data.Dataset.from_tensor_slices(tokens).shuffle(len(tokens), seed=SEED).repeat()
    return ds.map(mask_tokens, num_parallel_calls=2).batch(BATCH).prefetch(2)


class EncoderBlock(layers.Layer):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.att = layers.MultiHeadAttention(HEADS, DIM // HEADS, dropout=0.1)
        self.norm1 = layers.LayerNormalization(epsilon=1e-6)
        self.norm2 = layers.LayerNormalization(epsilon=1e-6)
        self.up = layers.Dense(FFN, activation="gelu")
        self.down = layers.Dense(DIM)

    def call(self, x, training=None):
        x = self.norm1(x + self.att(x, x, training=training))
        return self.norm2(x + self.down(self.up(x)))


class BertMLM(keras.Model):
    def __init__(self):
        super().__init__()
        self.word = layers.Embedding(VOCAB, DIM)
        self.pos = layers.Embedding(SEQ, DIM)
        self.norm = layers.LayerNormalization(epsilon=1e-6)
        self.blocks = [EncoderBlock() for _ in range(DEPTH)]
        self.transform = layers.Dense(DIM, activation="gelu")
        self.bias = self.add_weight(shape=(VOCAB,), initializer="zeros", name="mlm_bias")
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def encode(self, ids, training):
        x = self.norm(self.word(ids) + self.pos(tf.range(SEQ))[None])
        for block in self.blocks:
            x = block(x, training=training)
        return x

    def vocab_logits(self, hidden):
        h = self.transform(hidden)
        return tf.einsum("bsd,vd->bsv", h, tf.convert_to_tensor(self.word.embeddings)) + self.bias

    def call(self, batch, training=None):
        hidden = self.encode(batch["inputs"], training)
        logits = self.vocab_logits(hidden)
        return tf.gather(logits, batch["positions"], batch_dims=1)

    def train_step(self, batch):
        with tf.GradientTape() as tape:
            logits = self(batch, training=True)
            nll = tf.nn.sparse_softmax_cross_entropy_with_logits(batch["labels"], logits)
            loss = tf.reduce_mean(nll)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    @property
    def metrics(self):
        return [self.loss_tracker]


def main():
    model = BertMLM()
    schedule = keras.optimizers.schedules.PolynomialDecay(5e-4, STEPS)
    model.compile(optimizer=keras.optimizers.AdamW(schedule, weight_decay=0.01, clipnorm=1.0),
                  jit_compile=False)
    model.fit(dataset(make_corpus()), steps_per_epoch=STEPS, epochs=1, verbose=2)


if __name__ == "__main__":
    main()
