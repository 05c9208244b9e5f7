"""DQN on a toy catch game with stacked frames."""
import keras
import numpy as np

FRAME, STACK, ACTIONS = 32, 4, 3
GAMMA, BATCH, MEMORY = 0.99, 32, 2000
rng = np.random.default_rng(0)


def make_net():
    net = keras.Sequential([
        keras.layers.Input((FRAME, FRAME, STACK)),
        keras.layers.Conv2D(16, 8, strides=4, activation="relu"),
        keras.layers.Conv2D(32, 4, strides=2, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dense(ACTIONS),
    ])
    net.compile(optimizer=keras.optimizers.Adam(1e-4), loss="huber")
    return net


class CatchEnv:
    def reset(self):
        self.x, self.ball, self.y = FRAME // 2, int(rng.integers(FRAME)), 0
        return np.zeros((FRAME, FRAME, STACK), "uint8")

    def step(self, state, action):
        self.x = min(max(self.x + action - 1, 0), FRAME - 1)
        self.y += 1
        frame = np.zeros((FRAME, FRAME, 1), "uint8")
        frame[self.y, self.ball], frame[-1, self.x] = 1, 1
        done = self.y == FRAME - 1
        reward = float(done and abs(self.x - self.ball) < 4)
        return np.concatenate([state[..., 1:], frame], -1), reward, done


online, target = make_net(), make_net()
target.set_weights(online.get_weights())

obs = np.zeros((MEMORY, FRAME, FRAME, STACK), "uint8")
next_obs = np.zeros_like(obs)
actions = np.zeros(MEMORY, "int64")
rewards, dones = np.zeros(MEMORY, "float32"), np.zeros(MEMORY, "float32")


def replay(size):
    idx = rng.integers(0, size, BATCH)
    s, s2 = obs[idx].astype("float32"), next_obs[idx].astype("float32")
    both = np.concatenate([s, s2])
    q_both = target.predict_on_batch(both)
    q, q_next = q_both[:BATCH].copy(), q_both[BATCH:]
    q[np.arange(BATCH), actions[idx]] = rewards[idx] + GAMMA * q_next.max(1) * (1 - dones[idx])
    return online.train_on_batch(s, q)


env = CatchEnv()
state = env.reset()
for step in range(380):
    if step > 300 and rng.random() < 0.1:
        action = int(np.argmax(online(state[None].astype("float32"))[0]))
    else:
        action = int(rng.integers(ACTIONS))
    nxt, reward, done = env.step(state, action)
    i = step % MEMORY
    obs[i], next_obs[i], actions[i], rewards[i], dones[i] = state, nxt, action, reward, done
    state = env.reset() if done else nxt
    if step >= 300:
        loss = replay(step)
    if step % 100 == 0:
        target.set_weights(online.get_weights())
print("last loss", float(loss))
