"""Offline advantage-weighted regression for building climate control: separate actor and critic."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

OBS, ACT, BATCH, STEPS = 48, 6, 512, 90
rng = np.random.default_rng(0)
keras.utils.set_random_seed(0)
obs = rng.normal(size=(8192, OBS)).astype("float32")
act = np.tanh(obs[:, :ACT] + 0.3 * rng.normal(size=(8192, ACT))).astype("float32")
ret = (-np.abs(obs[:, :ACT] - act).sum(1)).astype("float32")


def mlp(out):
    return keras.Sequential([keras.Input((OBS,)), layers.Dense(256, "relu"), layers.Dense(256, "relu"), layers.Dense(out)])


actor, critic = mlp(ACT), mlp(1)
opt = keras.optimizers.SGD(1e-2)
variables = actor.trainable_variables + critic.trainable_variables
opt.build(variables)


@tf.function
def train_step(o, a, r):
    with tf.GradientTape(persistent=True) as tape:
        value = critic(o, training=True)[:, 0]
        critic_loss = tf.reduce_mean(tf.square(r - value))
        weight = tf.stop_gradient(tf.minimum(tf.exp(r - value), 20.0))
        actor_loss = tf.reduce_mean(weight * tf.reduce_sum(tf.square(actor(o, training=True) - a), -1))
    grads = tape.gradient(actor_loss, actor.trainable_variables)
    grads += tape.gradient(critic_loss, critic.trainable_variables)
    opt.apply_gradients(zip(grads, variables))
    return actor_loss, critic_loss


ds = tf.data.Dataset.from_tensor_slices((obs, act, ret)).batch(BATCH).cache().repeat().prefetch(2)
for i, batch in enumerate(ds.take(STEPS)):
    a_loss, c_loss = train_step(*batch)
    if i % 30 == 0:
        print(i, round(float(a_loss), 4), round(float(c_loss), 4))
