"""Double DQN with prioritised replay on a toy warehouse-robot simulator."""
import numpy as np
import tensorflow as tf

OBS, ACTIONS, CAPACITY, BATCH = 24, 6, 40000, 64
rng = np.random.default_rng(0)
tf.keras.utils.set_random_seed(0)


class Simulator:
    def __init__(self):
        self.a = rng.normal(size=(OBS, OBS)) * 0.2
        self.b = rng.normal(size=(ACTIONS, OBS)) * 0.3
        self.s = rng.normal(size=OBS)

    def step(self, action):
        self.s = np.tanh(self.a @ self.s + self.b[action] + rng.normal(size=OBS) * 0.05)
        return self.s.astype("float32"), float(-np.abs(self.s[:4]).sum())


class PrioritizedReplay:
    def __init__(self, capacity, alpha=0.6, beta=0.4):
        self.capacity, self.alpha, self.beta = capacity, alpha, beta
        self.obs = np.zeros((capacity, OBS), "float32")
        self.next_obs = np.zeros((capacity, OBS), "float32")
        self.act = np.zeros(capacity, "int32")
        self.rew = np.zeros(capacity, "float32")
        self.scaled = np.zeros(capacity)
        self.pos, self.size = 0, 0

    def add(self, o, a, r, o2, priority=1.0):
        i = self.pos
        self.obs[i], self.act[i], self.rew[i], self.next_obs[i] = o, a, r, o2
        self.scaled[i] = priority ** self.alpha
        self.pos = (i + 1) % self.capacity
        self.size = min(self.size + 1, self.capacity)

    def sample(self, n):
        cum = np.cumsum(self.scaled[: self.size])
        idx = np.minimum(np.searchsorted(cum, np.random.random(n) * cum[-1]), self.size - 1)
        weights = (self.size * self.scaled[idx] / cum[-1]) ** -self.beta
        weights = (weights / weights.max()).astype("float32")
        return idx, self.obs[idx], self.act[idx], self.rew[idx], self.next_obs[idx], weights

    def update(self, idx, td):
        for i, e in zip(idx, td):
            self.scaled[i] = (abs(float(e)) + 1e-3) ** self.alpha


def q_network():
    return tf.keras.Sequential([tf.keras.Input((OBS,)), tf.keras.layers.Dense(128, "relu"),
                                tf.keras.layers.Dense(128, "relu"), tf.keras.layers.Dense(ACTIONS)])


online, target = q_network(), q_network()
target.set_weights(online.get_weights())
opt = tf.keras.optimizers.Adam(5e-4)
opt.build(online.trainable_variables)


@tf.function
def act(obs):
    return tf.argmax(online(obs[None])[0])


@tf.function
def learn(o, a, r, o2, w):
    best = tf.argmax(online(o2), axis=1)
    y = r + 0.97 * tf.gather(target(o2), best, batch_dims=1)
    with tf.GradientTape() as tape:
        td = y - tf.gather(online(o), a, batch_dims=1)
        loss = tf.reduce_mean(w * tf.square(td))
    grads = tape.gradient(loss, online.trainable_variables)
    opt.apply_gradients(zip(grads, online.trainable_variables))
    return td


env, replay = Simulator(), PrioritizedReplay(CAPACITY)
obs = env.s.astype("float32")
for _ in range(CAPACITY - 500):  # random warm-up
    a = int(rng.integers(ACTIONS))
    nxt, rew = env.step(a)
    replay.add(obs, a, rew, nxt)
    obs = nxt

score = 0.0
for t in range(250):
    a = int(rng.integers(ACTIONS)) if rng.random() < 0.1 else int(act(tf.constant(obs)))
    nxt, rew = env.step(a)
    replay.add(obs, a, rew, nxt)
    obs, score = nxt, 0.99 * score + 0.01 * rew
    idx, *batch = replay.sample(BATCH)
    td = learn(*[tf.constant(b) for b in batch])
    replay.update(idx, td.numpy())
    if t % 200 == 0:
        target.set_weights(online.get_weights())
print("running reward", round(score, 3))
