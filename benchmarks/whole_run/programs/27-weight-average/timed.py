import phase_timer
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)
phase_timer._T('preparing')

rng = np.random.RandomState(0)
true_w = rng.randn(40, 1)
data_x = rng.randn(4000, 40).astype(np.float32)
data_y = (data_x.dot(true_w) + 0.1 * rng.randn(4000, 1)).astype(np.float32)

phase_timer._T('building')
x = tf.placeholder(tf.float32, [None, 40])
y = tf.placeholder(tf.float32, [None, 1])

W1 = tf.get_variable("W1", [40, 64])
b1 = tf.get_variable("b1", [64], initializer=tf.zeros_initializer())
W2 = tf.get_variable("W2", [64, 1])
slow = tf.Variable(W1.initial_value, trainable=False)

h = tf.nn.relu(tf.matmul(x, W1) + b1)
pred = tf.matmul(h, W2)
loss = tf.reduce_mean(tf.square(pred - y))
train = tf.train.AdamOptimizer(1e-3).minimize(loss)

with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    phase_timer._T('training_steps')
    for it in range(620):
        idx = rng.randint(0, 4000, 64)
        _, l = sess.run([train, loss], feed_dict={x: data_x[idx], y: data_y[idx]})
        # keep a slow moving average of the weights
        tau = min(0.99, it / (it + 10.0))
        sess.run(tf.assign(slow, tau * slow + (1.0 - tau) * W1))
        if it % 50 == 0:
            print("iteration %d loss %.4f" % (it, l))
    phase_timer._T('evaluation')
    print("final loss", sess.run(loss, feed_dict={x: data_x, y: data_y}))
    w = sess.run(slow)
    print("averaged weights: mean %.4f std %.4f" % (w.mean(), w.std()))
    phase_timer._T('other')
