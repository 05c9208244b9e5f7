import numpy as np
import tensorflow as tf

T, D, H = 40, 8, 24


class Cell(tf.Module):
    def __init__(self, seed=0):
        super().__init__()
        g = tf.random.Generator.from_seed(seed)
        self.wx = tf.Variable(g.normal((D, 3 * H)) * .3)
        self.wh = tf.Variable(g.normal((H, 3 * H)) * .2)
        self.b = tf.Variable(tf.zeros((3 * H,)))
        self.wo = tf.Variable(g.normal((H, 1)) * .3)
        self.init = [tf.identity(v) for v in self.trainable_variables]

    def reset(self):
        for v, i in zip(self.trainable_variables, self.init):
            v.assign(i)

    def __call__(self, x):
        h = tf.zeros((x.shape[0], H))
        for t in range(T):
            gates = x[:, t] @ self.wx + self.b
            rec = h @ self.wh
            r = tf.sigmoid(gates[:, :H] + rec[:, :H])
            u = tf.sigmoid(gates[:, H:2 * H] + rec[:, H:2 * H])
            c = tf.tanh(gates[:, 2 * H:] + r * rec[:, 2 * H:])
            h = u * h + (1 - u) * c
        return (h @ self.wo)[:, 0]


net = Cell()


@tf.function
def train_step(x, y, lr, clip, noise):
    with tf.GradientTape() as tape:
        pred = net(x + noise * tf.random.normal(x.shape))
        loss = tf.reduce_mean(tf.square(pred - y))
    grads = tape.gradient(loss, net.trainable_variables)
    grads, _ = tf.clip_by_global_norm(grads, clip)
    for v, g in zip(net.trainable_variables, grads):
        v.assign_sub(lr * g)
    return loss


@tf.function
def val_loss(x, y):
    return tf.reduce_mean(tf.square(net(x) - y))


rng = np.random.default_rng(0)
x = rng.normal(size=(1280 + 320, T, D)).astype("float32")
y = (x[:, -5:, 0].sum(1) * .5 + x[:, -3:, 1].sum(1) * .3).astype("float32")
xv, yv = tf.constant(x[1280:]), tf.constant(y[1280:])
batches = [(tf.constant(x[i:i + 64]), tf.constant(y[i:i + 64])) for i in range(0, 1280, 64)]

trials = []
for trial in range(14):
    lr = tf.constant(10 ** rng.uniform(-2.5, -0.5), tf.float32)
    clip = tf.constant(rng.choice([0.5, 1.0, 5.0]), tf.float32)
    noise = tf.constant(rng.uniform(0, 0.3), tf.float32)
    net.reset()
    for epoch in range(12):
        for bx, by in batches:
            train_step(bx, by, lr, clip, noise)
    v = float(val_loss(xv, yv))
    trials.append((v, float(lr), float(clip), float(noise)))
    print("trial %d lr %.4f clip %.1f noise %.2f -> %.4f" % (trial, float(lr), float(clip), float(noise), v))
print("best", min(trials))
