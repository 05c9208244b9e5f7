"""Phase retrieval from coded diffraction patterns by gradient descent."""
import keras
import numpy as np
import tensorflow as tf

SIZE, MASKS = 384, 6
rng = np.random.default_rng(0)
yy, xx = np.mgrid[-1:1:SIZE * 1j, -1:1:SIZE * 1j]
amplitude = np.exp(-3 * (xx**2 + yy**2))
truth = amplitude * np.exp(1j * 2 * np.sin(5 * xx) * np.cos(4 * yy))
masks = np.exp(2j * np.pi * rng.random((MASKS, SIZE, SIZE)))
measured = np.abs(np.fft.fft2(masks * truth)).astype("float32") / SIZE

masks = tf.constant(masks, tf.complex64)
measured = tf.constant(measured)
real = tf.Variable(tf.random.normal((SIZE, SIZE), stddev=0.1))
imag = tf.Variable(tf.random.normal((SIZE, SIZE), stddev=0.1))
optimizer = keras.optimizers.SGD(0.2)


def step():
    with tf.GradientTape() as tape:
        field = masks * tf.complex(real, imag)
        predicted = tf.abs(tf.signal.fft2d(field)) / SIZE
        loss = tf.reduce_sum(tf.square(predicted - measured)) / MASKS
    grads = tape.gradient(loss, [real, imag])
    optimizer.apply_gradients(zip(grads, [real, imag]))
    return loss


for i in range(70):
    loss = step()
    if i % 20 == 0:
        print("iteration", i, "loss", float(loss))
