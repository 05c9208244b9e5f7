# Neural machine translation with attention (GRU encoder-decoder, additive attention).
# Toy corpus: "numbers language" -> reversed, shifted target language.
import os
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"

import numpy as np
import tensorflow as tf

tf.random.set_seed(7)
np.random.seed(7)

BATCH_SIZE = 32
EMBEDDING_DIM = 64
UNITS = 256
ATT_UNITS = 128
SRC_VOCAB = 800
TGT_VOCAB = 600
SRC_LEN = 60
TGT_LEN = 20
EPOCHS = 2
N_PAIRS = 32 * 35


def load_corpus(n):
    lengths = np.random.randint(SRC_LEN // 2, SRC_LEN + 1, size=n)
    src = np.zeros((n, SRC_LEN), "int32")
    tgt = np.zeros((n, TGT_LEN), "int32")
    for i, length in enumerate(lengths):
        words = np.random.zipf(1.4, size=length) % (SRC_VOCAB - 3) + 3
        src[i, :length] = words
        summary = words[::4][: TGT_LEN - 2] % (TGT_VOCAB - 3) + 3
        tgt[i, 0] = 1
        tgt[i, 1 : 1 + len(summary)] = summary
        tgt[i, 1 + len(summary)] = 2
    return src, tgt


class Encoder(tf.keras.Model):
    def __init__(self, vocab_size, embedding_dim, enc_units):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(vocab_size, embedding_dim)
        self.gru = tf.keras.layers.GRU(enc_units, return_sequences=True, return_state=True)

    def call(self, x):
        return self.gru(self.embedding(x))


class BahdanauAttention(tf.keras.layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.W1 = tf.keras.layers.Dense(units)
        self.W2 = tf.keras.layers.Dense(units)
        self.V = tf.keras.layers.Dense(1)

    def call(self, query, values):
        query_with_time_axis = tf.expand_dims(query, 1)
        score = self.V(tf.nn.tanh(self.W1(query_with_time_axis) + self.W2(values)))
        attention_weights = tf.nn.softmax(score, axis=1)
        context = tf.matmul(attention_weights, values, transpose_a=True)
        return tf.squeeze(context, 1), attention_weights


class Decoder(tf.keras.Model):
    def __init__(self, vocab_size, embedding_dim, dec_units):
        super().__init__()
        self.embedding = tf.keras.layers.Embedding(vocab_size, embedding_dim)
        self.cell = tf.keras.layers.GRUCell(dec_units)
        self.attention = BahdanauAttention(ATT_UNITS)
        self.fc = tf.keras.layers.Dense(vocab_size)

    def call(self, x, hidden, enc_output):
        context, weights = self.attention(hidden, enc_output)
        x = tf.concat([context, self.embedding(x)], axis=-1)
        output, _ = self.cell(x, [hidden])
        return self.fc(output), output, weights


encoder = Encoder(SRC_VOCAB, EMBEDDING_DIM, UNITS)
decoder = Decoder(TGT_VOCAB, EMBEDDING_DIM, UNITS)
optimizer = tf.keras.optimizers.Adam()
loss_object = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


def loss_function(real, pred):
    mask = tf.cast(tf.not_equal(real, 0), tf.float32)
    return tf.reduce_mean(loss_object(real, pred) * mask)


@tf.function
def train_step(inp, targ):
    loss = 0.0
    with tf.GradientTape() as tape:
        enc_output, dec_hidden = encoder(inp)
        # Teacher forcing - feeding the target as the next input
        for t in range(1, TGT_LEN):
            predictions, dec_hidden, _ = decoder(targ[:, t - 1], dec_hidden, enc_output)
            loss += loss_function(targ[:, t], predictions)
    variables = encoder.trainable_variables + decoder.trainable_variables
    gradients = tape.gradient(loss, variables)
    gradients, _ = tf.clip_by_global_norm(gradients, 5.0)
    optimizer.apply_gradients(zip(gradients, variables))
    return loss / TGT_LEN


def main():
    src, tgt = load_corpus(N_PAIRS)
    dataset = tf.data.Dataset.from_tensor_slices((src, tgt)).shuffle(N_PAIRS, seed=7)
    dataset = dataset.batch(BATCH_SIZE, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    for epoch in range(EPOCHS):
        start = time.time()
        total_loss = 0.0
        for batch, (inp, targ) in enumerate(dataset):
            batch_loss = train_step(inp, targ)
            total_loss += batch_loss
            if batch % 20 == 0:
                print(f"Epoch {epoch + 1} Batch {batch} Loss {batch_loss.numpy():.4f}")
        print(f"Epoch {epoch + 1} Loss {total_loss / (batch + 1):.4f}, {time.time() - start:.1f} s")


if __name__ == "__main__":
    main()
