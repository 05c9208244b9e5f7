"""Policy gradient on a small game: its moves are NumPy, its update is a tf.function."""

import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
policy = tf.Variable(tf.zeros((4, 2)))


@tf.function
def act(state):
    return tf.nn.softmax(state @ policy)


@tf.function
def update(states, actions, returns):
    with tf.GradientTape() as tape:
        logits = states @ policy
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(actions, logits)
        loss = tf.reduce_mean(returns * losses)
    policy.assign_sub(0.1 * tape.gradient(loss, policy))


for episode in range(300):
    state, states, actions = rng.normal(size=4).astype("float32"), [], []
    for _ in range(4):
        chance = act(state[None]).numpy()[0, 1]
        actions.append(int(rng.random() < chance))
        states.append(state)
        state = (0.9 * state + 0.1 * actions[-1]).astype("float32")
    update(np.stack(states), np.array(actions), np.full(4, state.sum(), "float32"))
