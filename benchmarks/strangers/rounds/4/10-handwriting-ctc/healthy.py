"""Handwritten line recognition: slices -> CNN -> temporal convolutions -> CTC."""
import numpy as np
import tensorflow as tf
import keras
from keras import layers

keras.utils.set_random_seed(1234)

ALPHABET = "abcdefghij"
HEIGHT = 24
WIDTH = 192
SLICE = 8
N_SLICES = WIDTH // SLICE
MAX_LABEL = 8
BATCH = 16
N_LINES = 1200
EPOCHS = 8


class LineGenerator:
    """Draws each letter as a fixed random stroke pattern with jitter and noise."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        glyph_rng = np.random.default_rng(77)
        self.glyphs = (glyph_rng.random((len(ALPHABET), 16, 12)) < 0.35).astype("float32")

    def line(self):
        length = self.rng.integers(3, MAX_LABEL + 1)
        text = self.rng.integers(0, len(ALPHABET), length)
        image = np.zeros((HEIGHT, WIDTH), "float32")
        x = self.rng.integers(0, 10)
        for letter in text:
            y = self.rng.integers(1, HEIGHT - 17)
            image[y:y + 16, x:x + 12] = np.maximum(image[y:y + 16, x:x + 12], self.glyphs[letter])
            x += self.rng.integers(18, 22)
        image += self.rng.normal(0, 0.1, image.shape)
        label = np.full(MAX_LABEL, -1, "int32")
        label[:length] = text
        return image, label, length

    def batch(self, n):
        lines = [self.line() for _ in range(n)]
        images, labels, lengths = (np.stack(v) for v in zip(*lines))
        return images.astype("float32"), labels, lengths.astype("int32")


def to_slices(images):
    """(batch, height, width) -> (batch, slices, height, slice width, 1)"""
    x = images.reshape(-1, HEIGHT, N_SLICES, SLICE)
    return x.transpose(0, 2, 1, 3)[..., None]


class SliceEncoder(layers.Layer):
    """The same small CNN on every slice of the line."""

    def __init__(self, features):
        super().__init__()
        self.cnn = keras.Sequential([
            keras.Input((HEIGHT, SLICE, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(features, activation="relu"),
        ])
        self.features = features

    def call(self, x):
        merged = tf.reshape(x, (-1, HEIGHT, SLICE, 1))
        return tf.reshape(self.cnn(merged), (-1, N_SLICES, self.features))


def build_model():
    inputs = keras.Input((N_SLICES, HEIGHT, SLICE, 1))
    x = SliceEncoder(64)(inputs)
    for _ in range(2):
        x = layers.Conv1D(64, 5, padding="same", activation="relu")(x)
    logits = layers.Dense(len(ALPHABET) + 1)(x)
    return keras.Model(inputs, logits)


class CTCTrainer:
    def __init__(self):
        self.model = build_model()
        self.optimizer = keras.optimizers.Adam(2e-3, global_clipnorm=5.0)
        self.loss = keras.metrics.Mean()

    @tf.function
    def train_on_lines(self, slices, labels, lengths):
        n = tf.shape(slices)[0]
        with tf.GradientTape() as tape:
            logits = self.model(slices, training=True)
            loss = tf.reduce_mean(tf.nn.ctc_loss(
                labels=tf.maximum(labels, 0), logits=logits, label_length=lengths,
                logit_length=tf.fill([n], N_SLICES), logits_time_major=False,
                blank_index=len(ALPHABET)))
        grads = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.model.trainable_variables))
        self.loss.update_state(loss)

    def accuracy(self, slices, labels, lengths):
        logits = tf.transpose(self.model(slices), (1, 0, 2))
        decoded, _ = tf.nn.ctc_greedy_decoder(logits, tf.fill([len(slices)], N_SLICES))
        dense = tf.sparse.to_dense(decoded[0], default_value=-1).numpy()
        hits = [np.array_equal(d[d >= 0], t[:n]) for d, t, n in zip(dense, labels, lengths)]
        return np.mean(hits)


def main():
    images, labels, lengths = LineGenerator(1).batch(N_LINES)
    test = LineGenerator(2).batch(64)
    data = tf.data.Dataset.from_tensor_slices((to_slices(images), labels, lengths))
    data = data.shuffle(N_LINES).batch(BATCH, drop_remainder=True).prefetch(2)
    trainer = CTCTrainer()
    for epoch in range(EPOCHS):
        trainer.loss.reset_state()
        for batch in data:
            trainer.train_on_lines(*batch)
        print(f"epoch {epoch + 1}: ctc {float(trainer.loss.result()):.3f}, "
              f"lines right {trainer.accuracy(to_slices(test[0]), *test[1:]):.2%}")


if __name__ == "__main__":
    main()
