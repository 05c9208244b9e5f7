"""DeepSurv on a synthetic cohort: Cox partial likelihood with Breslow ties."""
import numpy as np
import tensorflow as tf
from tensorflow import keras

FEATURES, COHORT, BATCH = 60, 24000, 1500
rng = np.random.default_rng(0)
keras.utils.set_random_seed(0)
x = rng.normal(size=(COHORT, FEATURES)).astype("float32")
risk = 0.8 * x[:, 0] - 0.5 * x[:, 1] * x[:, 2]
time = rng.exponential(np.exp(-risk)).astype("float32")
censor = rng.exponential(2.0, COHORT)
event = (time <= censor).astype("float32")
time = np.minimum(time, censor).astype("float32")
y = np.stack([time, event], axis=1)


def cox_loss(y_true, log_risk):
    t, e = y_true[:, 0], y_true[:, 1]
    h = log_risk[:, 0]
    order = tf.argsort(t, direction="DESCENDING")
    h, e = tf.gather(h, order), tf.gather(e, order)
    shift = tf.reduce_max(h)
    log_denom = tf.math.log(tf.cumsum(tf.exp(h - shift))) + shift
    return -tf.reduce_sum((h - log_denom) * e) / (tf.reduce_sum(e) + 1e-6)


model = keras.Sequential([
    keras.Input((FEATURES,)),
    keras.layers.Dense(64, activation="selu"),
    keras.layers.Dense(64, activation="selu"),
    keras.layers.Dense(1, use_bias=False),
])
model.compile(keras.optimizers.Adam(1e-3), loss=cox_loss)
model.fit(x, y, batch_size=BATCH, epochs=4, verbose=2)
