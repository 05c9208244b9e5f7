"""Meter-reading OCR with a CRNN and CTC, train_step override."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

W, H, CHARS, LABEL_LEN, BATCH = 96, 24, 24, 7, 32
rng = np.random.default_rng(1)

# every glyph is a random 24x10 stamp
glyphs = rng.random((CHARS, H, 10)).astype("float32")
labels = rng.integers(0, CHARS, (896, LABEL_LEN)).astype("int32")
images = rng.normal(0, 0.1, (896, H, W, 1)).astype("float32")
for i, word in enumerate(labels):
    for j, c in enumerate(word):
        images[i, :, 4 + 12 * j : 14 + 12 * j, 0] += glyphs[c]
images = images.transpose(0, 2, 1, 3)


class Reader(keras.Model):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.loss_tracker = keras.metrics.Mean("loss")
        self.cer = keras.metrics.Mean("cer")

    @property
    def metrics(self):
        return [self.loss_tracker, self.cer]

    def ctc(self, y, logits):
        n = tf.shape(logits)[0]
        frames = tf.fill([n], tf.shape(logits)[1])
        loss = tf.nn.ctc_loss(y, logits, tf.fill([n], LABEL_LEN), frames, logits_time_major=False, blank_index=-1)
        return tf.reduce_mean(loss)

    def edit_distance(self, y, logits):
        frames = tf.fill([tf.shape(logits)[0]], tf.shape(logits)[1])
        decoded, _ = tf.nn.ctc_beam_search_decoder(tf.transpose(logits, [1, 0, 2]), frames, beam_width=25)
        truth = tf.sparse.from_dense(tf.cast(y, tf.int64) + 1)
        found = tf.SparseTensor(decoded[0].indices, decoded[0].values + 1, decoded[0].dense_shape)
        return tf.reduce_mean(tf.edit_distance(found, truth, normalize=True))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self(x, training=True)
            loss = self.ctc(y, logits)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def test_step(self, data):
        x, y = data
        logits = self(x, training=False)
        self.loss_tracker.update_state(self.ctc(y, logits))
        self.cer.update_state(self.edit_distance(y, logits))
        return {m.name: m.result() for m in self.metrics}


inp = keras.Input((W, H, 1))
x = layers.Conv2D(12, 3, padding="same", activation="relu")(inp)
x = layers.MaxPool2D(2)(x)
x = layers.Conv2D(24, 3, padding="same", activation="relu")(x)
x = layers.MaxPool2D((1, 2))(x)
x = layers.Reshape((W // 2, H // 4 * 24))(x)
x = layers.Dense(96, activation="relu")(x)
x = layers.Conv1D(128, 5, padding="same", activation="relu")(x)
model = Reader(inp, layers.Dense(CHARS + 1)(x))
model.compile(optimizer=keras.optimizers.Adam(1e-3))

train = tf.data.Dataset.from_tensor_slices((images[:832], labels[:832])).shuffle(832).batch(BATCH).prefetch(2)
valid = tf.data.Dataset.from_tensor_slices((images[832:], labels[832:])).batch(BATCH)
model.fit(train, epochs=3, validation_data=valid, verbose=2)
