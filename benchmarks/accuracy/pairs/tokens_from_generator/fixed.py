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


vectorize = layers.TextVectorization(vocabulary=WORDS, output_sequence_length=60)
dataset = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).repeat().batch(64)
dataset = dataset.map(lambda x, y: (vectorize(x), y), num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.prefetch(tf.data.AUTOTUNE)

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
