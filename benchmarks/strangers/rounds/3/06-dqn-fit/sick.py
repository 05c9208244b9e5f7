"""DQN agent for a small grid world."""
import random
from collections import deque

import numpy as np
from keras import layers, models, optimizers


class GridWorld:
    def __init__(self, size=6):
        self.size = size

    def reset(self):
        self.position = np.zeros(2, "float32")
        return self.state()

    def state(self):
        return np.concatenate([self.position / self.size, [1.0, 0.0]]).astype("float32")

    def step(self, action):
        move = [(0, 1), (1, 0), (0, -1), (-1, 0)][action]
        self.position = np.clip(self.position + move, 0, self.size - 1)
        done = bool((self.position == self.size - 1).all())
        return self.state(), (1.0 if done else -0.01), done


class Agent:
    def __init__(self):
        self.memory = deque(maxlen=2000)
        self.epsilon = 1.0
        self.model = models.Sequential(
            [layers.Input((4,)), layers.Dense(64, activation="relu"), layers.Dense(64, activation="relu"), layers.Dense(4)]
        )
        self.model.compile(loss="mse", optimizer=optimizers.Adam(1e-3))

    def act(self, state):
        if random.random() < self.epsilon:
            return random.randrange(4)
        return int(np.argmax(self.model(state[None])[0]))

    def replay(self, batch_size=64):
        batch = random.sample(self.memory, batch_size)
        states, actions, rewards, nexts, dones = map(np.array, zip(*batch))
        target = self.model(states).numpy()
        following = self.model(nexts).numpy()
        target[np.arange(batch_size), actions] = rewards + 0.95 * following.max(1) * (1 - dones)
        self.model.fit(states, target, batch_size=batch_size, epochs=1, verbose=0)
        self.epsilon = max(0.1, self.epsilon * 0.99)


agent, env = Agent(), GridWorld()
state = env.reset()
for t in range(160):
    action = agent.act(state)
    following, reward, done = env.step(action)
    agent.memory.append((state, action, reward, following, done))
    state = env.reset() if done else following
    if len(agent.memory) > 64:
        agent.replay()
print("epsilon", agent.epsilon)
