"""TensorFlow 1: a plain `Session`, placeholders and `feed_dict`."""

import sys

import numpy as np
import tensorflow as tf

from stopwatch import tick

v1 = tf.compat.v1
v1.disable_eager_execution()

learning_rate = 0.002
training_steps = int(sys.argv[1]) if len(sys.argv) > 1 else 180
batch_size = 256

rng = np.random.default_rng(0)
data = rng.random((5000, 784), dtype=np.float32)
answers = np.eye(10, dtype=np.float32)[(data[:, :100].sum(axis=1) * 7).astype(int) % 10]

X = v1.placeholder(tf.float32, [None, 784])
Y = v1.placeholder(tf.float32, [None, 10])
keep = v1.placeholder(tf.float32)

weights = {
    "h1": tf.Variable(v1.random_normal([784, 640], stddev=0.05, seed=1)),
    "h2": tf.Variable(v1.random_normal([640, 640], stddev=0.05, seed=2)),
    "out": tf.Variable(v1.random_normal([640, 10], stddev=0.05, seed=3)),
}
biases = {name: tf.Variable(tf.zeros([w.shape[1]])) for name, w in weights.items()}


def network(x):
    """Return the logits."""
    h1 = tf.nn.relu(tf.matmul(x, weights["h1"]) + biases["h1"])
    h1 = tf.nn.dropout(h1, rate=1 - keep, seed=4)
    h2 = tf.nn.relu(tf.matmul(h1, weights["h2"]) + biases["h2"])
    return tf.matmul(h2, weights["out"]) + biases["out"]


logits = network(X)
loss_op = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=Y))
train_op = v1.train.AdamOptimizer(learning_rate).minimize(loss_op)
correct = tf.equal(tf.argmax(logits, 1), tf.argmax(Y, 1))
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
init = v1.global_variables_initializer()

with v1.Session() as sess:
    sess.run(init)
    for step in range(1, training_steps + 1):
        tick()
        rows = rng.integers(0, len(data), batch_size)
        sess.run(train_op, feed_dict={X: data[rows], Y: answers[rows], keep: 0.8})
        if step % 60 == 0 or step == 1:
            feed = {X: data[rows], Y: answers[rows], keep: 1.0}
            loss, acc = sess.run([loss_op, accuracy], feed_dict=feed)
            print(f"Step {step}, Minibatch Loss= {loss:.4f}, Training Accuracy= {acc:.3f}")
    print("Optimization Finished!")
