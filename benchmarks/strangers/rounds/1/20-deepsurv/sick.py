"""DeepSurv: a neural Cox model."""
import keras
import numpy as np
import tensorflow as tf

BATCH, FEATURES = 1024, 30
rng = np.random.default_rng(0)
x = rng.normal(size=(20480, FEATURES)).astype("float32")
risk = x[:, 0] - 0.5 * x[:, 1]
time = rng.exponential(np.exp(-risk)).astype("float32")
event = (rng.random(20480) < 0.7).astype("float32")

model = keras.Sequential([
    keras.layers.Input((FEATURES,)),
    keras.layers.Dense(64, activation="selu"),
    keras.layers.Dropout(0.1),
    keras.layers.Dense(64, activation="selu"),
    keras.layers.Dense(1),
])
optimizer = keras.optimizers.Nadam(1e-3)


def cox_loss(time, event, score):
    """Negative partial log likelihood."""
    at_risk = tf.cast(time[None, :] >= time[:, None], tf.float32)
    masked = score[None, :] + tf.math.log(at_risk + 1e-9)
    log_risk = tf.reduce_logsumexp(masked, axis=1)
    return -tf.reduce_sum(event * (score - log_risk)) / tf.reduce_sum(event)


@tf.function
def train_step(x, time, event):
    with tf.GradientTape() as tape:
        score = model(x, training=True)[:, 0]
        loss = cox_loss(time, event, score)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


ds = tf.data.Dataset.from_tensor_slices((x, time, event)).cache().shuffle(20480).batch(BATCH, drop_remainder=True)
ds = ds.prefetch(tf.data.AUTOTUNE)
for epoch in range(8):
    losses = [train_step(*batch) for batch in ds]
    print("epoch", epoch, "loss", float(tf.reduce_mean(losses)))
