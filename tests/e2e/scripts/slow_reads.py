"""Steps of 50 ms that wait for their input."""

import time

import tensorflow as tf

weights = tf.Variable(tf.random.normal([64, 64]))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.tanh(batch @ weights) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


def read(row):
    time.sleep(0.05)
    return row


rows = tf.data.Dataset.from_tensor_slices(tf.random.normal([90, 8, 64]))
for batch in rows.map(lambda row: tf.ensure_shape(tf.py_function(read, [row], tf.float32), [8, 64])):
    train_step(batch)
