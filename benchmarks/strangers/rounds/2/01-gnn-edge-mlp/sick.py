"""Interaction network for n-body trajectories: predict accelerations from positions and velocities."""
import numpy as np
import tensorflow as tf

NODES, EDGES, FEAT, HIDDEN = 768, 12288, 32, 64
rng = np.random.default_rng(0)

# a fixed neighbour list; node states change from frame to frame
senders = tf.constant(rng.integers(0, NODES, EDGES), tf.int32)
receivers = tf.constant(np.sort(rng.integers(0, NODES, EDGES)), tf.int32)
frames = rng.normal(size=(24, NODES, FEAT)).astype("float32")
targets = np.tanh(frames[..., :3] * 2 - frames[..., 3:6]).astype("float32")


class EdgeConv(tf.Module):
    def __init__(self, d_in, d_out, name=None):
        super().__init__(name)
        init = tf.keras.initializers.GlorotUniform(seed=1)
        self.w_msg = tf.Variable(init((2 * d_in, d_out)), name="w_msg")
        self.b_msg = tf.Variable(tf.zeros(d_out), name="b_msg")
        self.w_upd = tf.Variable(init((d_in + d_out, d_out)), name="w_upd")
        self.b_upd = tf.Variable(tf.zeros(d_out), name="b_upd")

    def __call__(self, h):
        pair = tf.concat([tf.gather(h, senders), tf.gather(h, receivers)], axis=-1)
        msg = tf.nn.relu(tf.matmul(pair, self.w_msg) + self.b_msg)
        agg = tf.math.unsorted_segment_sum(msg, receivers, NODES) / 16.0
        return tf.nn.relu(tf.matmul(tf.concat([h, agg], -1), self.w_upd) + self.b_upd)


class InteractionNet(tf.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [EdgeConv(FEAT, HIDDEN), EdgeConv(HIDDEN, HIDDEN)]
        self.w_out = tf.Variable(tf.random.normal((HIDDEN, 3), stddev=0.05, seed=3))

    def __call__(self, h):
        for block in self.blocks:
            h = block(h)
        return tf.matmul(h, self.w_out)


net = InteractionNet()
opt = tf.keras.optimizers.Adam(1e-3)
opt.build(net.trainable_variables)


@tf.function
def train_step(state, acc):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(net(state) - acc))
    grads = tape.gradient(loss, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return loss


frames_t, targets_t = tf.constant(frames), tf.constant(targets)
for epoch in range(3):
    total = 0.0
    for i in rng.permutation(len(frames)):
        total += float(train_step(frames_t[int(i)], targets_t[int(i)]))
    print(f"epoch {epoch}: mse {total / len(frames):.4f}")
