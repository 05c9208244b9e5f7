"""SASRec-style next-item model for shop sessions; the last position predicts the next click."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

ITEMS, LEN, DIM, BATCH = 5000, 32, 32, 32
rng = np.random.default_rng(0)
keras.utils.set_random_seed(0)

start = rng.integers(0, ITEMS, (2560, 1))
stride = rng.integers(1, 4, (2560, 1))
sessions = ((start + stride * np.arange(LEN + 1)) % ITEMS).astype("int32")


class Block(layers.Layer):
    def __init__(self, dim, heads):
        super().__init__()
        self.att = layers.MultiHeadAttention(heads, dim // heads)
        self.ln1, self.ln2 = layers.LayerNormalization(), layers.LayerNormalization()
        self.ff1, self.ff2 = layers.Dense(2 * dim, activation="relu"), layers.Dense(dim)

    def call(self, x):
        x = x + self.att(self.ln1(x), x, use_causal_mask=True)
        return x + self.ff2(self.ff1(self.ln2(x)))


class SASRec(keras.Model):
    def __init__(self):
        super().__init__()
        self.item = layers.Embedding(ITEMS, DIM)
        self.pos = layers.Embedding(LEN, DIM)
        self.blocks = [Block(DIM, 2) for _ in range(2)]

    def call(self, ids):
        h = self.item(ids) + self.pos(tf.range(LEN))
        for b in self.blocks:
            h = b(h)
        return tf.einsum("bld,vd->blv", h, self.item.embeddings)

    def train_step(self, data):
        ids, nxt = data
        with tf.GradientTape() as tape:
            scores = self(ids, training=True)
            scores = scores[:, -1, :]
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=nxt, logits=scores))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return {"loss": loss}


model = SASRec()
model.compile(optimizer=keras.optimizers.Adam(1e-3))
model.fit(sessions[:, :-1], sessions[:, -1], batch_size=BATCH, epochs=1, verbose=2)
