# Vanilla RNN from scratch (lecture 9)
import numpy as np
import tensorflow as tf

T, B, D, H, C = 24, 32, 512, 64, 5
rng = np.random.default_rng(0)
data = rng.normal(size=(320, T, D)).astype("float32")
target = rng.integers(0, C, 320)

init = tf.initializers.GlorotNormal(seed=0)
Wx = tf.Variable(init((D, H)))
Wh = tf.Variable(init((H, H)))
bh = tf.Variable(tf.zeros(H))
Wo = tf.Variable(init((H, C)))
bo = tf.Variable(tf.zeros(C))
theta = [Wx, Wh, bh, Wo, bo]
learning_rate = 0.05


def forward(x):
    x = tf.transpose(x, [1, 0, 2])
    h0 = tf.zeros((B, H))
    cell = lambda h, x_t: tf.tanh(x_t @ Wx + h @ Wh + bh)
    states = tf.scan(cell, x, initializer=h0)
    return states[-1] @ Wo + bo


@tf.function
def step(x, y):
    with tf.GradientTape() as tape:
        logits = forward(x)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits))
    for p, g in zip(theta, tape.gradient(loss, theta)):
        p.assign_sub(learning_rate * tf.clip_by_norm(g, 1.0))
    return loss


for epoch in range(7):
    order = rng.permutation(len(data))
    for s in range(0, len(data), B):
        idx = order[s : s + B]
        loss = step(tf.constant(data[idx]), tf.constant(target[idx]))
    print("epoch", epoch, "loss", float(loss))
