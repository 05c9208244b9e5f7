"""TensorFlow 1: a `Session` with placeholders and `feed_dict`; argument: the file for the weights."""

import sys

import numpy as np
import tensorflow as tf

STEPS = 80

v1 = tf.compat.v1
v1.disable_eager_execution()
tf.config.experimental.enable_op_determinism()
v1.set_random_seed(7)

inputs = v1.placeholder(tf.float32, [None, 16])
targets = v1.placeholder(tf.float32, [None, 1])
first = v1.get_variable("first", [16, 32], initializer=v1.random_normal_initializer(stddev=0.1))
second = v1.get_variable("second", [32, 1], initializer=v1.random_normal_initializer(stddev=0.1))
hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(inputs, first)), rate=0.1)
loss = tf.reduce_mean((tf.matmul(hidden, second) - targets) ** 2)
train = v1.train.AdamOptimizer(0.01).minimize(loss)

rng = np.random.default_rng(7)
with v1.Session() as session:
    session.run(v1.global_variables_initializer())
    for _ in range(STEPS):
        batch = rng.random((16, 16), dtype="float32")
        session.run([train, loss], {inputs: batch, targets: batch.sum(axis=1, keepdims=True)})
    weights = session.run([first, second])

np.save(sys.argv[1], np.concatenate([weight.ravel() for weight in weights]))
