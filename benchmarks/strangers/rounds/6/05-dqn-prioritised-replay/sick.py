"""Double DQN with prioritised replay on a vectorised multi-product inventory problem."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import tensorflow as tf
import keras
from keras import layers

SEED = 9
N_ENVS, OBS, ACTIONS = 32, 40, 9
CAPACITY, WARMUP = 400_000, 320_000
BATCH, GAMMA, TAU, ALPHA = 768, 0.98, 0.01, 0.6
STEPS = 400
keras.utils.set_random_seed(SEED)


class InventoryEnv:
    """N_ENVS independent shops; an action orders one of ACTIONS lot sizes for the next product in turn."""

    def __init__(self, rng):
        self.rng = rng
        self.n_products = OBS // 2
        self.stock = rng.integers(0, 20, (N_ENVS, self.n_products)).astype("float32")
        self.rate = rng.uniform(0.5, 4.0, (N_ENVS, self.n_products)).astype("float32")
        self.t = 0

    def obs(self):
        turn = np.roll(np.concatenate([self.stock / 20, self.rate / 4], axis=1), -self.t % OBS, axis=1)
        return turn.astype("float32")

    def step(self, actions):
        k = self.t % self.n_products
        self.stock[:, k] += actions * 2
        demand = self.rng.poisson(self.rate).astype("float32")
        sold = np.minimum(self.stock, demand)
        self.stock -= sold
        reward = sold.sum(1) - 0.05 * self.stock.sum(1) - 0.3 * (actions > 0)
        self.t += 1
        done = self.rng.random(N_ENVS) < 0.005
        return self.obs(), (reward / 10).astype("float32"), done.astype("float32")


class PrioritisedReplay:
    def __init__(self):
        self.obs = np.zeros((CAPACITY, OBS), "float32")
        self.next_obs = np.zeros((CAPACITY, OBS), "float32")
        self.action = np.zeros(CAPACITY, "int32")
        self.reward = np.zeros(CAPACITY, "float32")
        self.done = np.zeros(CAPACITY, "float32")
        self.priority = np.zeros(CAPACITY, "float64")
        self.size = self.head = 0
        self.max_priority = 1.0

    def add(self, obs, action, reward, next_obs, done):
        idx = (self.head + np.arange(len(obs))) % CAPACITY
        self.obs[idx], self.next_obs[idx] = obs, next_obs
        self.action[idx], self.reward[idx], self.done[idx] = action, reward, done
        self.priority[idx] = self.max_priority
        self.head = (self.head + len(obs)) % CAPACITY
        self.size = min(self.size + len(obs), CAPACITY)

    def sample(self, rng, beta):
        p = self.priority[:self.size] ** ALPHA
        p /= p.sum()
        idx = rng.choice(self.size, BATCH, p=p)
        weights = (self.size * p) ** -beta
        weights = (weights / weights.max())[idx].astype("float32")
        return idx, (self.obs[idx], self.action[idx], self.reward[idx], self.next_obs[idx],
                     self.done[idx], weights)

    def update(self, idx, td):
        self.priority[idx] = np.abs(td) + 1e-3
        self.max_priority = max(self.max_priority, float(self.priority[idx].max()))


def q_network():
    x = inp = keras.Input((OBS,))
    x = layers.Dense(256, activation="relu")(x)
    x = layers.Dense(256, activation="relu")(x)
    value = layers.Dense(1)(x)
    adv = layers.Dense(ACTIONS)(x)
    return keras.Model(inp, value + adv - keras.ops.mean(adv, axis=1, keepdims=True))


class Agent:
    def __init__(self):
        self.online, self.target = q_network(), q_network()
        self.target.set_weights(self.online.get_weights())
        self.opt = keras.optimizers.Adam(3e-4)
        self.opt.build(self.online.trainable_variables)

    @tf.function
    def greedy(self, obs):
        return tf.argmax(self.online(obs), axis=1)

    @tf.function
    def learn(self, obs, action, reward, next_obs, done, weights):
        best = tf.argmax(self.online(next_obs), axis=1)
        q_next = tf.gather(self.target(next_obs), best, batch_dims=1)
        goal = tf.stop_gradient(reward + GAMMA * (1.0 - done) * q_next)
        with tf.GradientTape() as tape:
            q = tf.gather(self.online(obs), action, batch_dims=1)
            td = goal - q
            loss = tf.reduce_mean(weights * tf.where(tf.abs(td) < 1, 0.5 * td * td, tf.abs(td) - 0.5))
        grads = tape.gradient(loss, self.online.trainable_variables)
        self.opt.apply_gradients(zip(grads, self.online.trainable_variables))
        return loss, td

    def soft_update(self):
        new = [TAU * w + (1 - TAU) * t for w, t in zip(self.online.get_weights(), self.target.get_weights())]
        self.target.set_weights(new)


def main():
    rng = np.random.default_rng(SEED)
    env, memory, agent = InventoryEnv(rng), PrioritisedReplay(), Agent()
    obs = env.obs()
    while memory.size < WARMUP:                       # random policy
        act = rng.integers(0, ACTIONS, N_ENVS)
        nxt, rew, done = env.step(act)
        memory.add(obs, act, rew, nxt, done)
        obs = nxt
    returns = []
    for step in range(STEPS):
        explore = rng.random(N_ENVS) < max(0.05, 0.5 - step / STEPS)
        act = np.where(explore, rng.integers(0, ACTIONS, N_ENVS), agent.greedy(obs).numpy())
        nxt, rew, done = env.step(act)
        memory.add(obs, act, rew, nxt, done)
        obs = nxt
        returns.append(rew.mean())
        idx, batch = memory.sample(rng, beta=0.4 + 0.6 * step / STEPS)
        loss, td = agent.learn(*map(tf.constant, batch))
        memory.update(idx, td.numpy())
        agent.soft_update()
        if step % 100 == 99:
            print(f"step {step + 1} loss {float(loss):.4f} mean reward {np.mean(returns[-100:]):.3f}")


if __name__ == "__main__":
    main()
