import os
import tempfile
import numpy as np
from PIL import Image, ImageDraw
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers


class Sampling(layers.Layer):
    def call(self, inputs):
        mean, logvar = inputs
        self.add_loss(-0.0005 * tf.reduce_mean(1 + logvar - mean ** 2 - tf.exp(logvar)))
        return mean + tf.exp(0.5 * logvar) * tf.random.normal(tf.shape(mean))


class Snapshot(keras.callbacks.Callback):
    """Keeps a picture of the latent plane and the model."""

    def __init__(self, encoder, x, y, folder, every=1):
        super().__init__()
        self.encoder, self.x, self.y, self.folder, self.every = encoder, x, y, folder, every

    def on_epoch_end(self, epoch, logs=None):
        if (epoch + 1) % self.every:
            return
        z = self.encoder.predict(self.x, verbose=0)
        img = Image.new("RGB", (1000, 1000), "white")
        draw = ImageDraw.Draw(img)
        for (a, b), label in zip(z, self.y):
            px, py = 500 + 120 * a, 500 + 120 * b
            color = tuple(int(v) for v in PALETTE[label])
            draw.ellipse((px - 3, py - 3, px + 3, py + 3), fill=color)
        img.save(os.path.join(self.folder, f"latent_{epoch:03d}.png"))
        self.model.save(os.path.join(self.folder, f"vae_{epoch:03d}.keras"))


PALETTE = np.random.RandomState(5).randint(0, 255, (10, 3))
rng = np.random.RandomState(0)
y = rng.randint(0, 10, 20000)
proto = rng.rand(10, 196)
x = np.clip(proto[y] + rng.randn(20000, 196) * 0.15, 0, 1).astype("float32")

inp = layers.Input((196,))
h = layers.Dense(256, activation="relu")(inp)
mean = layers.Dense(2)(h)
logvar = layers.Dense(2)(h)
z = Sampling()([mean, logvar])
h = layers.Dense(256, activation="relu")(z)
out = layers.Dense(196, activation="sigmoid")(h)
vae = keras.Model(inp, out)
encoder = keras.Model(inp, mean)
vae.compile(optimizer="adam", loss="binary_crossentropy")

with tempfile.TemporaryDirectory() as folder:
    snap = Snapshot(encoder, x, y, folder)
    vae.fit(x, x, epochs=36, batch_size=256, callbacks=[snap], verbose=0)
    print("files:", len(os.listdir(folder)))
print("reconstruction", vae.evaluate(x[:4000], x[:4000], verbose=0))
