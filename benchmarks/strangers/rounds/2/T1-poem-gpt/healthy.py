"""Tiny GPT on character data, port of the original GPT-2 code."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

CTX, DIM, HEADS, BATCH, STEPS, VOCAB = 64, 64, 4, 12, 80, 28
keras.utils.set_random_seed(0)
words = ["moon", "river", "stone", "quiet", "amber", "winter", "light", "a", "of", "the"]
text = " ".join(np.random.choice(words, 20000))
ids = np.array([ord(c) - 96 if c != " " else 0 for c in text], "int32")


def gelu(x):
    return 0.5 * x * (1 + tf.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * tf.pow(x, 3))))


class Block(layers.Layer):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = layers.LayerNormalization(), layers.LayerNormalization()
        self.att = layers.MultiHeadAttention(HEADS, DIM // HEADS)
        self.up, self.down = layers.Dense(4 * DIM, activation=gelu), layers.Dense(DIM)

    def call(self, x):
        h = self.ln1(x)
        x = x + self.att(h, h, use_causal_mask=True)
        return x + self.down(self.up(self.ln2(x)))


inp = keras.Input((CTX,), dtype="int32")
h = layers.Embedding(VOCAB, DIM)(inp) + layers.Embedding(CTX, DIM)(np.arange(CTX))
for _ in range(2):
    h = Block()(h)
model = keras.Model(inp, layers.Dense(VOCAB)(layers.LayerNormalization()(h)))
opt = keras.optimizers.Adam(1e-3)
opt.build(model.trainable_variables)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    return loss


for step in range(STEPS):
    at = np.random.randint(0, len(ids) - CTX - 1, BATCH)
    chunk = ids[at[:, None] + np.arange(CTX + 1)]
    loss = train_step(tf.constant(chunk[:, :-1]), tf.constant(chunk[:, 1:]))
    if step % 30 == 0:
        print(step, float(loss))
