"""Sentiment of short product reviews with a GRU."""
import numpy as np
import tensorflow as tf
from keras import layers, models

VOCAB = 8000
MAXLEN = 200
BATCH = 32

rng = np.random.default_rng(3)
lengths = np.clip(rng.lognormal(3.3, 0.4, 2560).astype(int), 5, MAXLEN)
reviews = [rng.integers(1, VOCAB, n) for n in lengths]
labels = rng.integers(0, 2, len(reviews)).astype("float32")


def stream():
    order = rng.permutation(len(reviews))
    for i in order:
        yield reviews[i], labels[i]


signature = (tf.TensorSpec((None,), tf.int32), tf.TensorSpec((), tf.float32))
dataset = tf.data.Dataset.from_generator(stream, output_signature=signature)
dataset = dataset.padded_batch(BATCH, padded_shapes=([None], []), drop_remainder=True)
dataset = dataset.cache().prefetch(2)

model = models.Sequential(
    [
        layers.Input((None,), dtype="int32"),
        layers.Embedding(VOCAB, 32, mask_zero=True),
        layers.GRU(32),
        layers.Dense(16, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile("rmsprop", "binary_crossentropy", metrics=["accuracy"])
model.fit(dataset, epochs=1, verbose=2)
