"""A language user: each batch is padded to its longest sentence, and the model is compiled by XLA."""

import numpy as np
import tensorflow as tf

from stopwatch import tick

tf.keras.utils.set_random_seed(57)
rng = np.random.default_rng(57)
LONGEST, BATCH, STEPS = 120, 16, 60
lengths = np.minimum(rng.geometric(1 / 30, BATCH * STEPS), LONGEST)
words = [rng.integers(1, 5000, length) for length in lengths]
sentences = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([list(w) for w in words]))
sentences = sentences.map(lambda sentence: (sentence, tf.cast(sentence[0] % 2, tf.float32)))
dataset = sentences.padded_batch(BATCH, padded_shapes=([None], []))
dataset = dataset.prefetch(tf.data.AUTOTUNE)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Embedding(5000, 64),
        tf.keras.layers.Conv1D(128, 3, padding="same", activation="relu"),
        tf.keras.layers.GlobalMaxPooling1D(),
        tf.keras.layers.Dense(1),
    ]
)
model.compile("adam", tf.keras.losses.BinaryCrossentropy(from_logits=True), jit_compile=True)
watch = tf.keras.callbacks.LambdaCallback(on_train_batch_begin=lambda batch, logs: tick())
model.fit(dataset, verbose=2, callbacks=[watch])
