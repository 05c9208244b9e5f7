"""Classifies reviews with one block of a transformer.

The network is that of https://keras.io/examples/nlp/text_classification_with_transformer/, with its sizes. The
reviews are made up: numbers of words, as `keras.datasets.imdb` returns them.
"""

import keras
import numpy as np
from keras import layers, ops

vocab_size = 20000
maxlen = 200
embed_dim = 32
num_heads = 2
ff_dim = 32


class TransformerBlock(layers.Layer):
    """Attention and two dense layers, each with a residual connection."""

    def __init__(self, embed_dim, num_heads, ff_dim, rate=0.1):
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim)
        self.ffn = keras.Sequential(
            [layers.Dense(ff_dim, activation="relu"), layers.Dense(embed_dim)]
        )
        self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
        self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)
        self.dropout1 = layers.Dropout(rate)
        self.dropout2 = layers.Dropout(rate)

    def call(self, inputs):
        """Return the features of each word."""
        attn_output = self.att(inputs, inputs)
        attn_output = self.dropout1(attn_output)
        out1 = self.layernorm1(inputs + attn_output)
        ffn_output = self.ffn(out1)
        ffn_output = self.dropout2(ffn_output)
        return self.layernorm2(out1 + ffn_output)


class TokenAndPositionEmbedding(layers.Layer):
    """One embedding of the words, and one of their positions."""

    def __init__(self, maxlen, vocab_size, embed_dim):
        super().__init__()
        self.token_emb = layers.Embedding(input_dim=vocab_size, output_dim=embed_dim)
        self.pos_emb = layers.Embedding(input_dim=maxlen, output_dim=embed_dim)

    def call(self, x):
        """Return their sum."""
        maxlen = ops.shape(x)[-1]
        positions = ops.arange(start=0, stop=maxlen, step=1)
        return self.token_emb(x) + self.pos_emb(positions)


def made_up_reviews(number):
    """Return reviews of 20 to 300 words, rare words being rarer, and whether they are good."""
    rng = np.random.default_rng(number)
    lengths = rng.integers(20, 300, number)
    reviews = [np.minimum(rng.zipf(1.3, length), vocab_size - 1) for length in lengths]
    return reviews, rng.integers(0, 2, number)


x_train, y_train = made_up_reviews(2560)
x_val, y_val = made_up_reviews(320)
x_train = keras.utils.pad_sequences(x_train, maxlen=maxlen)
x_val = keras.utils.pad_sequences(x_val, maxlen=maxlen)

inputs = layers.Input(shape=(maxlen,))
embedding_layer = TokenAndPositionEmbedding(maxlen, vocab_size, embed_dim)
x = embedding_layer(inputs)
transformer_block = TransformerBlock(embed_dim, num_heads, ff_dim)
x = transformer_block(x)
x = layers.GlobalAveragePooling1D()(x)
x = layers.Dropout(0.1)(x)
x = layers.Dense(20, activation="relu")(x)
x = layers.Dropout(0.1)(x)
outputs = layers.Dense(2, activation="softmax")(x)

model = keras.Model(inputs=inputs, outputs=outputs)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=32, epochs=12, validation_data=(x_val, y_val), verbose=2)
