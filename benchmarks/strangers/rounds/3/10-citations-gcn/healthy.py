# Two-layer GCN from scratch, full-batch
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
N, F, H, C = 900, 600, 16, 7

edges = rng.integers(0, N, (4000, 2))
A = np.eye(N, dtype="float32")
A[edges[:, 0], edges[:, 1]] = 1
A[edges[:, 1], edges[:, 0]] = 1
d = A.sum(1) ** -0.5
A_hat = tf.constant(A * d[:, None] * d[None, :])
features = (rng.random((N, F)) < 0.02).astype("float32")
X = tf.constant(features)
y = tf.constant(rng.integers(0, C, N))
train_mask = tf.constant((rng.random(N) < 0.3).astype("float32"))

glorot = tf.keras.initializers.GlorotUniform(seed=1)
W1 = tf.Variable(glorot((F, H)))
b1 = tf.Variable(tf.zeros(H))
W2 = tf.Variable(glorot((H, C)))
b2 = tf.Variable(tf.zeros(C))
params = [W1, b1, W2, b2]
opt = tf.keras.optimizers.Adam(0.01)


def gcn(x):
    x = tf.nn.dropout(x, 0.3)
    h = tf.nn.relu(tf.matmul(A_hat, tf.matmul(x, W1)) + b1)
    h = tf.nn.dropout(h, 0.5)
    return tf.matmul(A_hat, tf.matmul(h, W2)) + b2


@tf.function
def train_epoch():
    with tf.GradientTape() as tape:
        logits = gcn(X)
        ce = tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)
        loss = tf.reduce_sum(ce * train_mask) / tf.reduce_sum(train_mask)
        loss += 5e-4 * tf.nn.l2_loss(W1)
    opt.apply_gradients(zip(tape.gradient(loss, params), params))
    return loss


for epoch in range(150):
    loss = train_epoch()
    if epoch % 25 == 0:
        print(f"epoch {epoch:3d} loss {loss.numpy():.4f}")
