"""A language user: a subclassed encoder of two blocks, with `fit`."""

import keras
import numpy as np

from stopwatch import tick

keras.utils.set_random_seed(15)
tokens = np.random.default_rng(15).integers(0, 4000, (8 * 35, 64))


class Block(keras.layers.Layer):
    """Attention and a feed-forward part."""

    def __init__(self, width):
        super().__init__()
        self.attention = keras.layers.MultiHeadAttention(4, width // 4)
        self.norms = [keras.layers.LayerNormalization() for _ in range(2)]
        self.wide = keras.layers.Dense(4 * width, activation="relu")
        self.narrow = keras.layers.Dense(width)

    def call(self, x):
        """Return what the block makes of a sequence."""
        x = self.norms[0](x + self.attention(x, x))
        return self.norms[1](x + self.narrow(self.wide(x)))


model = keras.Sequential(
    [
        keras.Input((64,), dtype="int32"),
        keras.layers.Embedding(4000, 384),
        Block(384),
        Block(384),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(2, dtype="float32"),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
watch = keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(tokens, tokens[:, 0] % 2, batch_size=8, epochs=2, verbose=2, callbacks=[watch])
