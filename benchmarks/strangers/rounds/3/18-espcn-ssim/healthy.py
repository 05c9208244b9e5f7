import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

UPSCALE = 3
LOW = 24


def psnr(y_true, y_pred):
    return tf.image.psnr(y_true, y_pred, max_val=1.0)


def ssim(y_true, y_pred):
    return tf.image.ssim(y_true, y_pred, max_val=1.0)


def get_model():
    inputs = keras.Input((LOW, LOW, 1))
    x = layers.Conv2D(32, 5, activation="tanh", padding="same", kernel_initializer="orthogonal")(inputs)
    x = layers.Conv2D(32, 3, activation="tanh", padding="same", kernel_initializer="orthogonal")(x)
    x = layers.Conv2D(16, 3, activation="tanh", padding="same", kernel_initializer="orthogonal")(x)
    x = layers.Conv2D(UPSCALE**2, 3, padding="same")(x)
    outputs = layers.Lambda(lambda t: tf.nn.depth_to_space(t, UPSCALE))(x)
    return keras.Model(inputs, outputs)


rng = np.random.default_rng(0)
high = rng.random((976, LOW * UPSCALE, LOW * UPSCALE, 1), dtype="float32")
low = tf.image.resize(high, (LOW, LOW), method="area").numpy()
x_train, y_train, x_val, y_val = low[:960], high[:960], low[960:], high[960:]

model = get_model()
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=[psnr])
model.fit(x_train, y_train, batch_size=8, epochs=1, verbose=2)
print("validation SSIM", float(tf.reduce_mean(ssim(y_val, model(x_val)))))
