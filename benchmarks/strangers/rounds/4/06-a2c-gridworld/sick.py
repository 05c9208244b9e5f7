"""Synchronous advantage actor-critic (A2C) on a small grid world with several environments."""
import numpy as np
import tensorflow as tf
from tensorflow import keras

SEED = 5
N_ENVS = 8
ROLLOUT = 10
UPDATES = 600
GAMMA = 0.97
ENTROPY_COEF = 0.01
VALUE_COEF = 0.5
MOVES = [(-1, 0), (1, 0), (0, -1), (0, 1)]


class GridWorld:
    """The agent walks over a grid with walls to a goal that moves with every episode."""

    def __init__(self, size, seed):
        self.size = size
        self.rng = np.random.default_rng(seed)
        self.walls = np.random.default_rng(99).random((size, size)) < 0.15
        self.reset()

    def _free_cell(self):
        while True:
            cell = tuple(self.rng.integers(0, self.size, 2))
            if not self.walls[cell]:
                return cell

    def reset(self):
        self.agent, self.goal = self._free_cell(), self._free_cell()
        self.t = 0
        return self.observe()

    def observe(self):
        obs = np.zeros((self.size, self.size, 3), "float32")
        obs[..., 0] = self.walls
        obs[self.agent][1] = 1.0
        obs[self.goal][2] = 1.0
        return obs.ravel()

    def step(self, action):
        self.t += 1
        y, x = self.agent[0] + MOVES[action][0], self.agent[1] + MOVES[action][1]
        if 0 <= y < self.size and 0 <= x < self.size and not self.walls[y, x]:
            self.agent = (y, x)
        done = self.agent == self.goal or self.t >= 50
        reward = 1.0 if self.agent == self.goal else -0.02
        return (self.reset() if done else self.observe()), reward, done


class A2CAgent:
    def __init__(self, obs_dim, n_actions, lr=7e-4):
        inputs = keras.Input((obs_dim,))
        x = keras.layers.Dense(128, activation="relu")(inputs)
        x = keras.layers.Dense(128, activation="relu")(x)
        logits = keras.layers.Dense(n_actions)(x)
        value = keras.layers.Dense(1)(x)
        self.net = keras.Model(inputs, [logits, value])
        self.optimizer = keras.optimizers.RMSprop(lr)
        self.rng = np.random.default_rng(SEED)
        self.n_actions = n_actions

    @tf.function(reduce_retracing=True)
    def forward(self, obs):
        logits, value = self.net(obs)
        return tf.nn.softmax(logits), value[:, 0]

    def act(self, observations):
        actions = []
        for obs in observations:
            probs, _ = self.forward(obs[None])
            p = probs.numpy()[0].astype("float64")
            actions.append(self.rng.choice(self.n_actions, p=p / p.sum()))
        return actions

    @tf.function
    def update(self, obs, actions, returns):
        with tf.GradientTape() as tape:
            logits, values = self.net(obs, training=True)
            values = values[:, 0]
            advantage = tf.stop_gradient(returns - values)
            log_p = tf.nn.log_softmax(logits)
            taken = tf.gather(log_p, actions, axis=1, batch_dims=1)
            entropy = -tf.reduce_sum(tf.exp(log_p) * log_p, -1)
            loss = (-tf.reduce_mean(taken * advantage)
                    + VALUE_COEF * tf.reduce_mean(tf.square(returns - values))
                    - ENTROPY_COEF * tf.reduce_mean(entropy))
        grads = tape.gradient(loss, self.net.trainable_variables)
        grads, _ = tf.clip_by_global_norm(grads, 0.5)
        self.optimizer.apply_gradients(zip(grads, self.net.trainable_variables))
        return loss


def collect(agent, envs, observations):
    batch_obs, batch_actions, rewards, dones = [], [], [], []
    for _ in range(ROLLOUT):
        actions = agent.act(observations)
        batch_obs.append(np.stack(observations))
        batch_actions.append(actions)
        results = [env.step(a) for env, a in zip(envs, actions)]
        observations = [r[0] for r in results]
        rewards.append([r[1] for r in results])
        dones.append([r[2] for r in results])
    _, last = agent.forward(np.stack(observations))
    running = last.numpy()
    returns = np.zeros((ROLLOUT, N_ENVS), "float32")
    for t in reversed(range(ROLLOUT)):
        running = np.array(rewards[t]) + GAMMA * running * (1.0 - np.array(dones[t]))
        returns[t] = running
    return (np.concatenate(batch_obs), np.concatenate(batch_actions).astype("int32"),
            returns.ravel(), float(np.mean(rewards)), observations)


def main():
    keras.utils.set_random_seed(SEED)
    envs = [GridWorld(8, SEED + i) for i in range(N_ENVS)]
    agent = A2CAgent(8 * 8 * 3, len(MOVES))
    observations = [env.reset() for env in envs]
    history = []
    for update in range(UPDATES):
        obs, actions, returns, reward, observations = collect(agent, envs, observations)
        agent.update(obs, actions, returns)
        history.append(reward)
        if (update + 1) % 50 == 0:
            print(f"update {update + 1}: mean reward {np.mean(history[-50:]):.3f}")


if __name__ == "__main__":
    main()
