"""Graph convolution network for node classification (Cora-sized graph)."""
import keras
import numpy as np
import tensorflow as tf

N, F, HIDDEN, CLASSES, EDGES = 2708, 300, 64, 7, 5429
rng = np.random.default_rng(0)
labels = rng.integers(0, CLASSES, N)
x = (rng.random((N, F)) < 0.02).astype("float32")
x[np.arange(N), labels] = 1.0
src, dst = rng.integers(0, N, EDGES), rng.integers(0, N, EDGES)

adj = np.zeros((N, N), "float32")
adj[src, dst] = adj[dst, src] = 1.0
adj[np.arange(N), np.arange(N)] = 1.0
deg = adj.sum(1) ** -0.5
adj = deg[:, None] * adj * deg[None, :]
adj = tf.sparse.from_dense(adj)

train_mask = tf.constant((rng.random(N) < 0.3).astype("float32"))
labels, x = tf.constant(labels), tf.constant(x)


class GraphConv(keras.layers.Layer):
    def __init__(self, units, activation=None):
        super().__init__()
        self.dense = keras.layers.Dense(units)
        self.activation = keras.activations.get(activation)

    def call(self, h):
        return self.activation(tf.sparse.sparse_dense_matmul(adj, self.dense(h)))


class GCN(keras.Model):
    def __init__(self):
        super().__init__()
        self.conv1 = GraphConv(HIDDEN, "relu")
        self.conv2 = GraphConv(HIDDEN, "relu")
        self.conv3 = GraphConv(CLASSES)
        self.drop = keras.layers.Dropout(0.5)

    def call(self, h, training=False):
        h = self.drop(self.conv1(h), training=training)
        h = self.drop(self.conv2(h), training=training)
        return self.conv3(h)


model = GCN()
model(x)
optimizer = keras.optimizers.Adam(0.01)


@tf.function
def train_step():
    with tf.GradientTape() as tape:
        logits = model(x, training=True)
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = tf.reduce_sum(loss * train_mask) / tf.reduce_sum(train_mask)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


for epoch in range(100):
    loss = train_step()
    if epoch % 25 == 0:
        print(f"epoch {epoch} loss {float(loss):.4f}")
