"""A Python generator: episodes are played with the policy, then `train_step(*next(episodes))` (RL)."""

import numpy as np
import tensorflow as tf
from keras import layers, models, optimizers, utils

from stopwatch import tick

WALKS, LENGTH, GAMMA = 64, 20, 0.97


class Corridor:
    """Many walkers on a line, each of whom wants to stand at zero."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        """Place the walkers anew."""
        self.at = self.rng.uniform(-5, 5, size=WALKS)
        return self.observe()

    def observe(self):
        """Return what each walker sees."""
        return np.stack([self.at, np.abs(self.at), np.sign(self.at)], axis=1).astype("float32")

    def step(self, action):
        """Move; being far away costs."""
        self.at += np.where(action == 1, 0.5, -0.5) + self.rng.normal(0, 0.05, WALKS)
        return self.observe(), -np.abs(self.at)


utils.set_random_seed(3)
policy = models.Sequential(
    [layers.Input((3,)), layers.Dense(256, "relu"), layers.Dense(256, "relu"), layers.Dense(2)]
)
optimizer = optimizers.Adam(5e-3)


@tf.function
def logits(observation):
    """Return what the policy thinks of both directions."""
    return policy(observation)


@tf.function
def train_step(observations, actions, returns):
    """Make actions likelier that were followed by more than usual."""
    with tf.GradientTape() as tape:
        cost = tf.nn.sparse_softmax_cross_entropy_with_logits(actions, policy(observations))
        loss = tf.reduce_mean(cost * returns)
    grads = tape.gradient(loss, policy.trainable_variables)
    optimizer.apply_gradients(zip(grads, policy.trainable_variables, strict=True))


def play(env, rng):
    """Yield episodes for ever: observations, actions, returns and the mean reward."""
    while True:
        seen, done, rewards = [], [], []
        obs = env.reset()
        for _ in range(LENGTH):
            noise = rng.gumbel(size=(WALKS, 2))
            action = np.argmax(logits(obs).numpy() + noise, axis=1)
            seen.append(obs)
            done.append(action.astype("int32"))
            obs, reward = env.step(action)
            rewards.append(reward)
        returns, running = np.zeros((LENGTH, WALKS), "float32"), np.zeros(WALKS)
        for t in reversed(range(LENGTH)):
            running = rewards[t] + GAMMA * running
            returns[t] = running
        returns = (returns - returns.mean(axis=1, keepdims=True)) / (returns.std() + 1e-6)
        yield np.concatenate(seen), np.concatenate(done), returns.ravel(), np.mean(rewards)


if __name__ == "__main__":
    rng = np.random.default_rng(3)
    episodes = play(Corridor(rng), rng)
    for episode in range(120):
        tick()
        observations, actions, returns, reward = next(episodes)
        train_step(observations, actions, returns)
        if episode % 20 == 0:
            print(f"episode {episode:4d}  mean reward {reward:7.3f}")
