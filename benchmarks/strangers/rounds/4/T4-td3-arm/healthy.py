"""TD3 for a two-link robot arm that has to reach a point."""
import collections
import random

import numpy as np
import tensorflow as tf
from tensorflow import keras

SEED = 8
OBS_DIM = 10
ACT_DIM = 2
BATCH = 256
HIDDEN = 256
TAU = 0.005
GAMMA = 0.98
NOISE, NOISE_CLIP = 0.2, 0.5
WARM_UP = 300
TOTAL_STEPS = 900


class ReacherArm:
    """Two links of length 0.5, torques in [-1, 1], simple damped dynamics."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def reset(self):
        self.q = self.rng.uniform(-np.pi, np.pi, 2)
        self.dq = np.zeros(2)
        r, a = self.rng.uniform(0.3, 0.9), self.rng.uniform(-np.pi, np.pi)
        self.goal = np.array([r * np.cos(a), r * np.sin(a)])
        self.t = 0
        return self._obs()

    def _tip(self):
        a, b = self.q[0], self.q[0] + self.q[1]
        return 0.5 * np.array([np.cos(a) + np.cos(b), np.sin(a) + np.sin(b)])

    def _obs(self):
        return np.concatenate([np.cos(self.q), np.sin(self.q), self.dq, self.goal,
                               self._tip() - self.goal]).astype("float32")

    def step(self, torque):
        self.dq += 0.1 * (4 * torque - 0.8 * self.dq)
        self.q += 0.1 * self.dq
        self.t += 1
        distance = np.linalg.norm(self._tip() - self.goal)
        return self._obs(), float(-distance - 0.01 * np.sum(torque ** 2)), self.t >= 60


class ReplayBuffer:
    def __init__(self, size):
        self.memory = collections.deque(maxlen=size)

    def add(self, *transition):
        self.memory.append(transition)

    def sample(self, n):
        transitions = random.sample(self.memory, n)
        s, a, r, s2, d = map(np.array, zip(*transitions))
        return (s.astype("float32"), a.astype("float32"), r.astype("float32"),
                s2.astype("float32"), d.astype("float32"))


def network(n_in, n_out, activation=None):
    return keras.Sequential([
        keras.Input((n_in,)),
        keras.layers.Dense(HIDDEN, activation="relu"),
        keras.layers.Dense(HIDDEN, activation="relu"),
        keras.layers.Dense(HIDDEN, activation="relu"),
        keras.layers.Dense(n_out, activation=activation)])


class TD3:
    def __init__(self):
        self.actor, self.actor_target = (network(OBS_DIM, ACT_DIM, "tanh") for _ in range(2))
        self.critics = [network(OBS_DIM + ACT_DIM, 1) for _ in range(2)]
        self.critic_targets = [network(OBS_DIM + ACT_DIM, 1) for _ in range(2)]
        self.actor_target.set_weights(self.actor.get_weights())
        for target, critic in zip(self.critic_targets, self.critics):
            target.set_weights(critic.get_weights())
        self.actor_optimizer = keras.optimizers.Adam(3e-4)
        self.critic_optimizers = [keras.optimizers.Adam(3e-4) for _ in self.critics]

    @tf.function
    def update(self, s, a, r, s2, done):
        noise = tf.clip_by_value(tf.random.normal(tf.shape(a), stddev=NOISE),
                                 -NOISE_CLIP, NOISE_CLIP)
        a2 = tf.clip_by_value(self.actor_target(s2) + noise, -1.0, 1.0)
        next_q = [target(tf.concat([s2, a2], 1))[:, 0] for target in self.critic_targets]
        y = r + GAMMA * (1.0 - done) * tf.minimum(*next_q)

        with tf.GradientTape(persistent=True) as tape:
            sa = tf.concat([s, a], 1)
            losses = [tf.reduce_mean(tf.square(critic(sa)[:, 0] - y)) for critic in self.critics]
        for loss, critic, optimizer in zip(losses, self.critics, self.critic_optimizers):
            grads = tape.gradient(loss, critic.trainable_variables)
            optimizer.apply_gradients(zip(grads, critic.trainable_variables))
        del tape

        with tf.GradientTape() as tape:
            actor_loss = -tf.reduce_mean(self.critics[0](tf.concat([s, self.actor(s)], 1)))
        grads = tape.gradient(actor_loss, self.actor.trainable_variables)
        self.actor_optimizer.apply_gradients(zip(grads, self.actor.trainable_variables))

        for source, target in [(self.actor, self.actor_target),
                               *zip(self.critics, self.critic_targets)]:
            for v, t in zip(source.trainable_variables, target.trainable_variables):
                t.assign(TAU * v + (1.0 - TAU) * t)
        return tf.add_n(losses), actor_loss

    @tf.function
    def policy(self, s):
        return self.actor(s[tf.newaxis])[0]


def main():
    keras.utils.set_random_seed(SEED)
    env, agent, buffer = ReacherArm(SEED), TD3(), ReplayBuffer(100_000)
    rng = np.random.default_rng(SEED)
    s, total, scores = env.reset(), 0.0, []
    for step in range(TOTAL_STEPS + WARM_UP):
        if step < WARM_UP:
            a = rng.uniform(-1, 1, ACT_DIM)
        else:
            a = np.clip(agent.policy(s).numpy() + rng.normal(0, 0.1, ACT_DIM), -1, 1)
        s2, r, done = env.step(a)
        buffer.add(s, a, r, s2, 0.0)
        total += r
        s = s2
        if done:
            scores.append(total)
            s, total = env.reset(), 0.0
        if step >= WARM_UP:
            agent.update(*buffer.sample(BATCH))
    print(f"return of the first 5 episodes {np.mean(scores[:5]):.2f}, "
          f"of the last 5 {np.mean(scores[-5:]):.2f}")


if __name__ == "__main__":
    main()
