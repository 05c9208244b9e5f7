"""A text user: drops words at random, looks the others up, and trains in a loop of their own."""

import numpy as np
import tensorflow as tf

from stopwatch import tick

WORDS = [f"word{i}" for i in range(2000)]
LENGTH, BATCH = 320, 64

tf.keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)
texts = [" ".join(rng.choice(WORDS, LENGTH)) for _ in range(3200)]
labels = rng.integers(0, 2, len(texts)).astype("float32")
lookup = tf.keras.layers.StringLookup(vocabulary=WORDS)


def prepare(text, label):
    """Split, clean, drop a tenth of the words, number the rest."""
    text = tf.strings.regex_replace(tf.strings.lower(text), "<[^>]*>", " ")
    words = tf.strings.split(tf.strings.regex_replace(text, "[^a-z0-9 ]", ""))
    kept = tf.ragged.boolean_mask(
        words, words.with_values(tf.random.uniform(tf.shape(words.values)) < 0.9)
    )
    return lookup(kept.to_tensor("", shape=(None, LENGTH))), label


def main():
    """Train a few epochs."""
    dataset = tf.data.Dataset.from_tensor_slices((texts, labels)).shuffle(3200).batch(BATCH)
    dataset = dataset.map(prepare)
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = False
    dataset = dataset.with_options(options)
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Embedding(2001, 32),
            tf.keras.layers.AveragePooling1D(10),
            tf.keras.layers.LSTM(32),
            tf.keras.layers.Dense(1),
        ]
    )
    optimizer = tf.keras.optimizers.Adam()
    loss_of = tf.keras.losses.BinaryCrossentropy(from_logits=True)

    @tf.function
    def train_step(x, y):
        with tf.GradientTape() as tape:
            loss = loss_of(y[:, None], model(x, training=True))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    for epoch in range(8):
        for x, y in dataset:
            tick()
            loss = train_step(x, y)
        print(f"epoch {epoch}: {loss:.3f}")


if __name__ == "__main__":
    main()
