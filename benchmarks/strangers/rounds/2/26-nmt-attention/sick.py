"""GRU encoder-decoder with additive attention on a date-rewriting task, teacher forcing."""
import numpy as np
import tensorflow as tf

VOCAB, SRC, TGT, UNITS, ATT, BATCH, STEPS = 60, 48, 8, 96, 192, 16, 64
rng = np.random.default_rng(0)
tf.keras.utils.set_random_seed(0)
src = rng.integers(3, VOCAB, (2048, SRC)).astype("int32")
tgt = np.concatenate([np.ones((2048, 1)), src[:, : TGT * 2 : 2]], 1).astype("int32")


class Encoder(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.emb = tf.keras.layers.Embedding(VOCAB, UNITS)
        self.conv = tf.keras.layers.Conv1D(UNITS, 5, padding="same", activation="tanh")

    def call(self, ids):
        h = self.conv(self.emb(ids))
        return h, tf.reduce_mean(h, axis=1)


class Attention(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.w_query = tf.keras.layers.Dense(ATT)
        self.w_keys = tf.keras.layers.Dense(ATT)
        self.v = tf.keras.layers.Dense(1)

    def call(self, query, values):
        score = self.v(tf.nn.tanh(self.w_query(query)[:, None] + self.w_keys(values)))
        weights = tf.nn.softmax(score, axis=1)
        return tf.reduce_sum(weights * values, axis=1)


class Decoder(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.emb = tf.keras.layers.Embedding(VOCAB, UNITS)
        self.att = Attention()
        self.cell = tf.keras.layers.GRUCell(UNITS)
        self.out = tf.keras.layers.Dense(VOCAB)

    def call(self, token, state, memory):
        context = self.att(state, memory)
        x = tf.concat([self.emb(token), context], -1)
        y, [state] = self.cell(x, [state])
        return self.out(y), state


encoder, decoder = Encoder(), Decoder()
opt = tf.keras.optimizers.Adam(2e-3)
ce = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(inp, targ):
    loss = 0.0
    with tf.GradientTape() as tape:
        memory, state = encoder(inp)
        for t in range(TGT):
            logits, state = decoder(targ[:, t], state, memory)
            loss += ce(targ[:, t + 1], logits)
    variables = encoder.trainable_variables + decoder.trainable_variables
    opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss / TGT


ds = tf.data.Dataset.from_tensor_slices((src, tgt)).shuffle(2048).batch(BATCH, drop_remainder=True).repeat()
for i, (a, b) in enumerate(ds.prefetch(2).take(STEPS)):
    loss = train_step(a, b)
    if i % 20 == 0:
        print("batch", i, "loss", round(float(loss), 4))
