import random
import numpy as np
import tensorflow as tf

random.seed(0)
np.random.seed(0)
tf.random.set_seed(0)


class Env:
    """Walk on a line of cells; the observation is a noisy one-hot position plus a landscape."""
    N = 48

    def __init__(self):
        self.rng = np.random.default_rng(0)
        self.land = self.rng.random(self.N).astype("float32")

    def obs(self):
        v = np.zeros(self.N, "float32")
        v[self.pos] = 1.0
        return np.concatenate([v, self.land]) + self.rng.normal(0, 0.01, 2 * self.N).astype("float32")

    def reset(self):
        self.pos, self.t = self.N // 2, 0
        return self.obs()

    def step(self, a):
        self.pos = int(np.clip(self.pos + (-1, 0, 1)[a], 0, self.N - 1))
        self.t += 1
        return self.obs(), float(self.land[self.pos]) - 0.5, self.t >= 60


class Agent:
    def __init__(self, dim, actions):
        self.q = tf.keras.Sequential([
            tf.keras.layers.Input((dim,)),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(actions),
        ])
        self.opt = tf.keras.optimizers.Adam(1e-3)
        self.actions = actions
        self.memory = []
        self.eps = 1.0

    def act(self, s):
        if random.random() < self.eps:
            return random.randrange(self.actions)
        return int(np.argmax(self.qvalues(tf.constant(s[None]))))

    @tf.function
    def qvalues(self, s):
        return self.q(s)

    @tf.function
    def update(self, s, a, r, s2, d):
        target = r + 0.95 * (1.0 - d) * tf.reduce_max(self.q(s2), axis=1)
        with tf.GradientTape() as tape:
            q = tf.reduce_sum(self.q(s) * tf.one_hot(a, self.actions), axis=1)
            loss = tf.reduce_mean(tf.square(target - q))
        grads = tape.gradient(loss, self.q.trainable_variables)
        self.opt.apply_gradients(zip(grads, self.q.trainable_variables))
        return loss

    def remember(self, *transition):
        self.memory.append(transition)

    def replay(self, batch=32):
        if len(self.memory) < batch:
            return
        rows = [self.memory[i] for i in np.random.randint(0, len(self.memory), batch)]
        s, a, r, s2, d = zip(*rows)
        self.update(np.array(s), np.array(a, "int32"), np.array(r, "float32"),
                    np.array(s2), np.array(d, "float32"))
        self.eps = max(0.05, self.eps * 0.999)


env = Env()
agent = Agent(2 * Env.N, 3)
returns = []
for episode in range(170):
    s, total, done = env.reset(), 0.0, False
    while not done:
        a = agent.act(s)
        s2, r, done = env.step(a)
        agent.remember(s, a, r, s2, float(done))
        agent.replay()
        s, total = s2, total + r
    returns.append(total)
    if episode % 10 == 0:
        print("episode", episode, "return %.2f" % np.mean(returns[-10:]), "eps %.2f" % agent.eps)
