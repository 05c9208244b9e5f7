"""DDPG on a pendulum."""
import keras
import numpy as np
import tensorflow as tf
from keras import layers

rng = np.random.default_rng(0)
TAU, GAMMA, BATCH, CAPACITY = 0.005, 0.99, 64, 20000


def get_actor():
    inp = layers.Input((3,))
    x = layers.Dense(256, activation="relu")(inp)
    x = layers.Dense(256, activation="relu")(x)
    return keras.Model(inp, 2.0 * layers.Dense(1, activation="tanh")(x))


def get_critic():
    s, a = layers.Input((3,)), layers.Input((1,))
    hs = layers.Dense(32, activation="relu")(layers.Dense(16, activation="relu")(s))
    ha = layers.Dense(32, activation="relu")(a)
    x = layers.Concatenate()([hs, ha])
    x = layers.Dense(256, activation="relu")(x)
    x = layers.Dense(256, activation="relu")(x)
    return keras.Model([s, a], layers.Dense(1)(x))


actor, critic, target_actor, target_critic = get_actor(), get_critic(), get_actor(), get_critic()
target_actor.set_weights(actor.get_weights())
target_critic.set_weights(critic.get_weights())
actor_opt, critic_opt = keras.optimizers.Adam(1e-3), keras.optimizers.Adam(2e-3)

buf_s = np.zeros((CAPACITY, 3), "float32")
buf_a = np.zeros((CAPACITY, 1), "float32")
buf_r = np.zeros((CAPACITY, 1), "float32")
buf_s2 = np.zeros((CAPACITY, 3), "float32")


@tf.function
def learn(s, a, r, s2):
    with tf.GradientTape() as tape:
        y = r + GAMMA * target_critic([s2, target_actor(s2)])
        critic_loss = tf.reduce_mean(tf.square(y - critic([s, a])))
    grads = tape.gradient(critic_loss, critic.trainable_variables)
    critic_opt.apply_gradients(zip(grads, critic.trainable_variables))
    with tf.GradientTape() as tape:
        actor_loss = -tf.reduce_mean(critic([s, actor(s)]))
    grads = tape.gradient(actor_loss, actor.trainable_variables)
    actor_opt.apply_gradients(zip(grads, actor.trainable_variables))
    return critic_loss


def update_target(target, original):
    target_weights = target.get_weights()
    original_weights = original.get_weights()
    for i in range(len(target_weights)):
        target_weights[i] = original_weights[i] * TAU + target_weights[i] * (1 - TAU)
    target.set_weights(target_weights)


theta, speed = 3.0, 0.0
for step in range(300):
    state = np.array([np.cos(theta), np.sin(theta), speed], "float32")
    action = float(actor(state[None])[0, 0]) + rng.normal(0, 0.2)
    action = min(max(action, -2.0), 2.0)
    reward = -(theta**2 + 0.1 * speed**2 + 0.001 * action**2)
    speed = np.clip(speed + (15 * np.sin(theta) + 3 * action) * 0.05, -8, 8)
    theta = (theta + speed * 0.05 + np.pi) % (2 * np.pi) - np.pi
    buf_s[step], buf_a[step], buf_r[step] = state, action, reward
    buf_s2[step] = [np.cos(theta), np.sin(theta), speed]
    if step >= BATCH:
        idx = rng.integers(0, step, BATCH)
        loss = learn(buf_s[idx], buf_a[idx], buf_r[idx], buf_s2[idx])
        update_target(target_actor, actor)
        update_target(target_critic, critic)
print("critic loss", float(loss))
