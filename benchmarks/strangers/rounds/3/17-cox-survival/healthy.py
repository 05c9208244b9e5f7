"""DeepSurv on synthetic patients."""
import numpy as np
import tensorflow as tf
from tensorflow import keras

rng = np.random.default_rng(11)
X = rng.normal(size=(12800, 24)).astype("float32")
hazard = np.exp(0.5 * X[:, 0] - 0.3 * X[:, 1])
time = rng.exponential(1 / hazard).astype("float32")
event = (rng.random(len(X)) < 0.7).astype("float32")
labels = np.stack([time, event], axis=1)


def cox_loss(y_true, log_risk):
    time, event = y_true[:, 0], y_true[:, 1]
    log_risk = tf.reshape(log_risk, [-1])
    order = tf.argsort(time)
    event, log_risk = tf.gather(event, order), tf.gather(log_risk, order)
    log_sum = tf.math.cumulative_logsumexp(log_risk, reverse=True)
    return -tf.reduce_sum((log_risk - log_sum) * event) / (tf.reduce_sum(event) + 1e-6)


model = keras.Sequential(
    [
        keras.Input((24,)),
        keras.layers.Dense(64, activation="selu"),
        keras.layers.AlphaDropout(0.1),
        keras.layers.Dense(64, activation="selu"),
        keras.layers.Dense(1, use_bias=False),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=cox_loss)
model.fit(X, labels, batch_size=128, epochs=1, verbose=2)
