"""Trajectory forecasting for junction traffic with a GRU rollout."""
import numpy as np
import tensorflow as tf

AGENTS, PAST, FUTURE, DIM, STEPS = 96, 6, 6, 64, 75
rng = np.random.default_rng(0)
tf.keras.utils.set_random_seed(0)
time = np.arange(PAST + FUTURE) * 0.1
speed, turn = rng.uniform(0.5, 2, (2048, 1)), rng.uniform(-1, 1, (2048, 1))
track = np.stack([speed * np.cos(turn * time), speed * np.sin(turn * time)], -1).cumsum(1).astype("float32") * 0.1

embed = tf.keras.layers.Dense(DIM)
cell = tf.keras.layers.GRUCell(DIM)
head = tf.keras.layers.Dense(2)
for layer, width in ((embed, 2), (cell, DIM), (head, DIM)):
    layer.build((None, width))
variables = embed.trainable_variables + cell.trainable_variables + head.trainable_variables
opt = tf.keras.optimizers.Adam(1e-3)
opt.build(variables)


def encode(points, state):
    for k in range(points.shape[1]):
        _, [state] = cell(tf.nn.relu(embed(points[:, k])), [state])
    return state


def rollout(past):
    zero = tf.zeros([AGENTS, DIM])
    path = past
    for _ in range(FUTURE):
        state = encode(path, zero)
        nxt = path[:, -1] + head(state)
        path = tf.concat([path, nxt[:, None]], axis=1)
    return path[:, PAST:]


@tf.function
def train_step(tracks):
    with tf.GradientTape() as tape:
        pred = rollout(tracks[:, :PAST])
        loss = tf.reduce_mean(tf.norm(pred - tracks[:, PAST:] + 1e-6, axis=-1))
    opt.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


for step in range(STEPS):
    loss = train_step(tf.constant(track[rng.integers(0, len(track), AGENTS)]))
    if step % 20 == 0:
        print(step, float(loss))
