"""Batch-hard triplet loss."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers


def pairwise_distances(emb):
    diff = emb[:, None, :] - emb[None, :, :]
    return tf.sqrt(tf.reduce_sum(tf.square(diff), axis=-1) + 1e-9)


def batch_hard_triplet(labels, emb, margin=0.3):
    dist = pairwise_distances(emb)
    same = tf.equal(labels[:, None], labels[None, :])
    hardest_positive = tf.reduce_max(tf.where(same, dist, 0.0), axis=1)
    hardest_negative = tf.reduce_min(tf.where(same, 1e6, dist), axis=1)
    return tf.reduce_mean(tf.nn.relu(hardest_positive - hardest_negative + margin))


class EmbeddingModel(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            emb = self(x, training=True)
            loss = batch_hard_triplet(y, emb)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return {"loss": loss}


inp = keras.Input((32, 32, 1))
x = layers.Conv2D(16, 5, strides=2, activation="relu")(inp)
x = layers.Conv2D(32, 3, strides=2, activation="relu")(x)
x = layers.GlobalAveragePooling2D()(x)
x = layers.Dense(128)(x)
model = EmbeddingModel(inp, layers.UnitNormalization()(x))
model.compile(optimizer=keras.optimizers.Adam(1e-3))

rng = np.random.default_rng(0)
images = rng.normal(size=(3840, 32, 32, 1)).astype("float32")
people = rng.integers(0, 40, 3840)
model.fit(images, people, batch_size=192, epochs=4, verbose=2)
