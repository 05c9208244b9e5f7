"""CAPTCHA recognition with a CRNN and CTC loss."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

WIDTH, HEIGHT, CHARS, MAXLEN, BATCH = 128, 32, 20, 5, 32
rng = np.random.default_rng(0)
labels = rng.integers(0, CHARS, (1152, MAXLEN)).astype("int32")
glyphs = rng.random((CHARS, 20, HEIGHT))
images = np.stack([np.concatenate(glyphs[row], 0) for row in labels])
images = np.pad(images, ((0, 0), (14, 14), (0, 0)))[..., None].astype("float32")
ds = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1152).batch(BATCH, drop_remainder=True).prefetch(2)


def build_net():
    inputs = keras.Input((WIDTH, HEIGHT, 1))
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(inputs)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Reshape((WIDTH // 4, (HEIGHT // 4) * 32))(x)
    x = layers.Dense(48, activation="relu")(x)
    x = layers.Bidirectional(layers.GRU(32, return_sequences=True))(x)
    return keras.Model(inputs, layers.Dense(CHARS + 1)(x))


class OCR(keras.Model):
    def __init__(self):
        super().__init__()
        self.net = build_net()
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.cer = keras.metrics.Mean(name="cer")

    @property
    def metrics(self):
        return [self.loss_tracker, self.cer]

    def train_step(self, data):
        x, y = data
        frames = tf.fill([BATCH], WIDTH // 4)
        with tf.GradientTape() as tape:
            logits = tf.transpose(self.net(x, training=True), (1, 0, 2))
            loss = tf.nn.ctc_loss(y, logits, tf.fill([BATCH], MAXLEN), frames, blank_index=CHARS)
            loss = tf.reduce_mean(loss)
        grads = tape.gradient(loss, self.net.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.net.trainable_variables))
        decoded, _ = tf.nn.ctc_greedy_decoder(logits, frames)
        truth = tf.sparse.from_dense(tf.cast(y + 1, tf.int64))
        hypothesis = tf.SparseTensor(decoded[0].indices, decoded[0].values + 1, decoded[0].dense_shape)
        self.cer.update_state(tf.reduce_mean(tf.edit_distance(hypothesis, truth)))
        self.loss_tracker.update_state(loss)
        return {m.name: m.result() for m in self.metrics}


model = OCR()
model.compile(optimizer=keras.optimizers.Adam(1e-3))
model.fit(ds, epochs=2, verbose=2)
