"""A text user: a Python generator tokenizes, `from_generator` feeds the model."""

import random

import tensorflow as tf
from tensorflow.keras import layers, models, utils

from stopwatch import tick

utils.set_random_seed(6)
WORDS = [f"w{i}" for i in range(5000)]
INDEX = {word: i + 1 for i, word in enumerate(WORDS)}
TEXTS = [" ".join(random.choices(WORDS, k=60)) for _ in range(4000)]
LABELS = [len(text) % 2 for text in TEXTS]


def tokens():
    """Yield numbered words and a label, for ever."""
    while True:
        for text, label in zip(TEXTS, LABELS, strict=True):
            numbers = [INDEX.get(word.lower().strip(".,;"), 0) for word in text.split()]
            yield numbers[:60], label


signature = (tf.TensorSpec((60,), tf.int32), tf.TensorSpec((), tf.int32))
dataset = tf.data.Dataset.from_generator(tokens, output_signature=signature)
dataset = dataset.batch(64).prefetch(tf.data.AUTOTUNE)

model = models.Sequential(
    [
        layers.Input((60,), dtype="int32"),
        layers.Embedding(5002, 16),
        layers.GlobalAveragePooling1D(),
        layers.Dense(16, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy")
watch = tf.keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, steps_per_epoch=80, epochs=2, verbose=2, callbacks=[watch])
