"""Masked-language pre-training on log lines, with keras_hub's transformer layers.

Token ids come from a 12k vocabulary made elsewhere; 15 % of the tokens are masked.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
import keras
import keras_hub

VOCAB, LENGTH, BATCH = 12000, 64, 16
WIDTH, DEPTH, HEADS = 96, 2, 4
N_MASK = 10
MASK_ID = 1
STEPS, EPOCHS = 24, 3


def corpus(n, rng):
    """Zipfian tokens in short repeating motifs, like log lines."""
    motifs = 2 + (rng.zipf(1.3, (400, 8)) % (VOCAB - 2))
    picks = rng.integers(0, len(motifs), (n, LENGTH // 8))
    return motifs[picks].reshape(n, LENGTH).astype("int32")


def mask_tokens(tokens, rng):
    """Returns masked ids, positions, the ids there."""
    positions = np.sort(rng.random(tokens.shape).argsort(axis=1)[:, :N_MASK], axis=1)
    masked = tokens.copy()
    np.put_along_axis(masked, positions, MASK_ID, axis=1)
    targets = np.take_along_axis(tokens, positions, axis=1)
    return masked, positions.astype("int32"), targets


class Encoder(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embed = keras_hub.layers.TokenAndPositionEmbedding(
            VOCAB, LENGTH, WIDTH, tie_weights=True)
        self.blocks = [keras_hub.layers.TransformerEncoder(4 * WIDTH, HEADS, dropout=0.1)
                       for _ in range(DEPTH)]

    def call(self, ids, training=None):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, training=training)
        return x


def build_model():
    encoder = Encoder(name="encoder")
    ids = keras.Input((LENGTH,), dtype="int32", name="ids")
    hidden = encoder(ids)
    head = keras_hub.layers.MaskedLMHead(
        vocabulary_size=VOCAB, token_embedding=encoder.embed.token_embedding, name="head")
    everywhere = keras.ops.zeros_like(ids) + keras.ops.arange(LENGTH, dtype="int32")
    logits = head(hidden, mask_positions=everywhere)
    return keras.Model(ids, logits)


def dataset(tokens, rng):
    masked, positions, targets = mask_tokens(tokens, rng)
    weights = np.zeros(tokens.shape, "float32")
    np.put_along_axis(weights, positions, 1.0, axis=1)
    ds = tf.data.Dataset.from_tensor_slices((masked, tokens, weights))
    return (ds.shuffle(len(tokens), seed=8).batch(BATCH, drop_remainder=True)
            .prefetch(tf.data.AUTOTUNE))


def main():
    keras.utils.set_random_seed(8)
    rng = np.random.default_rng(8)
    tokens = corpus(STEPS * BATCH, rng)
    model = build_model()
    model.compile(
        optimizer=keras.optimizers.AdamW(3e-4),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    model.fit(dataset(tokens, rng), epochs=EPOCHS, verbose=2)


if __name__ == "__main__":
    main()
