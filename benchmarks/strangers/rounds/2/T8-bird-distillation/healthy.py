"""Distilling a bird-call teacher into a small student on randomly mixed spectrograms."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

T, F, CLASSES, BATCH, STEPS = 64, 48, 10, 12, 80
rng = np.random.default_rng(0)
keras.utils.set_random_seed(0)
calls = np.abs(rng.normal(size=(CLASSES, T, F))).astype("float32")
y = rng.integers(0, CLASSES, 480)
x = (calls[y] + 0.5 * rng.normal(size=(480, T, F))).astype("float32")[..., None]


def cnn(widths):
    net = keras.Sequential([keras.Input((T, F, 1))])
    for w in widths:
        net.add(layers.Conv2D(w, 3, strides=2, padding="same", activation="relu"))
        net.add(layers.Conv2D(w, 3, padding="same", activation="relu"))
    net.add(layers.GlobalAveragePooling2D())
    net.add(layers.Dense(CLASSES))
    return net


teacher, student = cnn((24, 48, 64)), cnn((16, 24))
teacher.trainable = False
opt = keras.optimizers.Adam(1e-3)
opt.build(student.trainable_variables)


@tf.function
def train_step(images):
    lam = tf.random.uniform((BATCH, 1, 1, 1))
    mixed = lam * images + (1 - lam) * tf.random.shuffle(images)
    with tf.GradientTape() as tape:
        soft = tf.nn.softmax(teacher(mixed, training=False) / 3.0)
        logp = tf.nn.log_softmax(student(mixed, training=True) / 3.0)
        loss = -tf.reduce_mean(tf.reduce_sum(soft * logp, -1)) * 9.0
    grads = tape.gradient(loss, student.trainable_variables)
    opt.apply_gradients(zip(grads, student.trainable_variables))
    return loss


ds = tf.data.Dataset.from_tensor_slices(x).shuffle(480).batch(BATCH, drop_remainder=True).repeat().prefetch(2)
for i, images in enumerate(ds.take(STEPS)):
    loss = train_step(images)
    if i % 25 == 0:
        print(i, float(loss))
