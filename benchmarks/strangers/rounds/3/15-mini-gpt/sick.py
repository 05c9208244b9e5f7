"""Character-level mini GPT."""
import keras
import numpy as np
from keras import layers, ops

VOCAB, SEQ, EMBED, HEADS, FF = 96, 64, 96, 8, 192


class TransformerBlock(layers.Layer):
    def __init__(self):
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads=HEADS, key_dim=EMBED)
        self.ffn = keras.Sequential([layers.Dense(FF, activation="relu"), layers.Dense(EMBED)])
        self.norm1 = layers.LayerNormalization(epsilon=1e-6)
        self.norm2 = layers.LayerNormalization(epsilon=1e-6)

    def call(self, x):
        x = self.norm1(x + self.att(x, x, use_causal_mask=True))
        return self.norm2(x + self.ffn(x))


class TokenAndPosition(layers.Layer):
    def __init__(self):
        super().__init__()
        self.token = layers.Embedding(VOCAB, EMBED)
        self.position = layers.Embedding(SEQ, EMBED)

    def call(self, x):
        return self.token(x) + self.position(ops.arange(SEQ))


inputs = layers.Input((SEQ,), dtype="int32")
x = TokenAndPosition()(inputs)
for _ in range(2):
    x = TransformerBlock()(x)
model = keras.Model(inputs, layers.Dense(VOCAB)(x))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))

text = np.random.default_rng(0).integers(0, VOCAB, 50000)
starts = np.random.default_rng(1).integers(0, len(text) - SEQ - 1, 800)
x_train = np.stack([text[s : s + SEQ] for s in starts])
y_train = np.stack([text[s + 1 : s + SEQ + 1] for s in starts])
model.fit(x_train, y_train, batch_size=8, epochs=1, verbose=2)
