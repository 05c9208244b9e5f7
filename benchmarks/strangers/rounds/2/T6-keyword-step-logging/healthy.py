"""Keyword spotting with dilated convolutions; every step goes to stdout and a CSV file."""
import csv
import os
import tempfile
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

FRAMES, MELS, WORDS, BATCH, STEPS = 100, 40, 12, 24, 80
rng = np.random.default_rng(0)
keras.utils.set_random_seed(0)
proto = rng.normal(size=(WORDS, FRAMES, MELS)).astype("float32")
y = rng.integers(0, WORDS, 600).astype("int32")
x = (proto[y] * 0.3 + rng.normal(size=(600, FRAMES, MELS))).astype("float32")

inp = keras.Input((FRAMES, MELS))
h = layers.Conv1D(128, 5, padding="same", activation="relu")(inp)
for width in (160, 160, 160):
    h = layers.Conv1D(width, 5, padding="same", activation="relu")(h)
net = keras.Model(inp, layers.Dense(WORDS)(layers.GlobalAveragePooling1D()(h)))
opt = keras.optimizers.Adam(5e-4)
opt.build(net.trainable_variables)
log = csv.writer(open(os.path.join(tempfile.mkdtemp(), "log.csv"), "w", buffering=1))


@tf.function
def train_step(a, b):
    with tf.GradientTape() as tape:
        logits = net(a, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=b, logits=logits))
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return loss, tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1, tf.int32), b), tf.float32))


ds = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(600).batch(BATCH).repeat().prefetch(2)
for step, (a, b) in enumerate(ds.take(STEPS)):
    loss, acc = train_step(a, b)
    print(f"step {step:4d}  loss {loss.numpy():.4f}  acc {acc.numpy():.3f}", flush=True)
    log.writerow([step, float(loss), float(acc)])
