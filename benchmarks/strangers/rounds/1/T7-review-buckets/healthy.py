"""Review sentiment with self-attention and length buckets."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

VOCAB, DIM, BATCH = 5000, 96, 32
rng = np.random.default_rng(0)
lengths = np.clip(rng.lognormal(3.7, 0.6, 4800).astype(int), 8, 256)
reviews = tf.RaggedTensor.from_row_lengths(rng.integers(1, VOCAB, lengths.sum()), lengths)
sentiment = rng.integers(0, 2, 4800).astype("float32")

ds = tf.data.Dataset.from_tensor_slices((reviews, sentiment)).map(lambda x, y: (x, y))
ds = ds.shuffle(4800).bucket_by_sequence_length(
    lambda x, y: tf.size(x),
    bucket_boundaries=[33, 65, 129],
    bucket_batch_sizes=[BATCH] * 4,
    pad_to_bucket_boundary=False,
    drop_remainder=True,
)


def fixed_shape(x, y):
    size = tf.shape(x)[1]
    target = tf.where(size <= 32, 32, tf.where(size <= 64, 64, tf.where(size <= 128, 128, 256)))
    return tf.pad(x, [[0, 0], [0, target - tf.shape(x)[1]]]), y


ds = ds.map(fixed_shape).cache().repeat()

inputs = keras.Input((None,), dtype="int64")
x = layers.Embedding(VOCAB, DIM)(inputs)
h = layers.MultiHeadAttention(4, DIM // 4)(x, x)
x = layers.LayerNormalization()(x + h)
h = layers.Dense(DIM)(layers.Dense(2 * DIM, activation="relu")(x))
x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x + h))
model = keras.Model(inputs, layers.Dense(1)(x))
optimizer = keras.optimizers.SGD(0.05)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        logits = model(x, training=True)[:, 0]
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


for step, (x, y) in enumerate(ds.take(100)):
    loss = train_step(x, y)
    if step % 25 == 0:
        print("step", step, "shape", x.shape, "loss", float(loss))
