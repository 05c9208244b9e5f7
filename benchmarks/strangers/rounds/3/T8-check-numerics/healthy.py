"""Spectral mask estimation for noisy speech."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers


class Enhancer(keras.Model):
    def train_step(self, data):
        noisy, clean = data
        with tf.GradientTape() as tape:
            mask = self(noisy, training=True)
            loss = tf.reduce_mean(tf.abs(mask * noisy - clean))
        tf.debugging.check_numerics(loss, "loss")
        grads = tape.gradient(loss, self.trainable_variables)
        grads = [tf.debugging.check_numerics(g, "gradient") for g in grads]
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        return {"loss": loss}


inputs = keras.Input((64, 65, 1))
x = inputs
for filters, dilation in ((16, 1), (16, 1), (24, 1), (24, 1)):
    x = layers.Conv2D(filters, 3, padding="same", activation="relu", dilation_rate=dilation)(x)
outputs = layers.Conv2D(1, 1, activation="sigmoid")(x)
model = Enhancer(inputs, outputs)
model.compile(optimizer=keras.optimizers.Adam(1e-3))

rng = np.random.default_rng(0)
clean = np.abs(rng.normal(size=(480, 64, 65, 1))).astype("float32")
noisy = clean + np.abs(rng.normal(scale=0.3, size=clean.shape)).astype("float32")
model.fit(noisy, clean, batch_size=4, epochs=1, verbose=2)
