"""Semi-supervised node classification on a citation-like graph: two-layer GCN + APPNP propagation, full batch."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import numpy as np
import scipy.sparse as sp
import tensorflow as tf
import keras
from keras import layers
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection

SEED = 8
N, N_CLASSES, N_WORDS, N_FEATURES = 16_000, 7, 600, 128
HIDDEN, HOPS, TELEPORT = 128, 6, 0.1
EPOCHS = 240
keras.utils.set_random_seed(SEED)


def citation_graph():
    """Stochastic block model with hubs, bag-of-words features tied to the class."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(0, N_CLASSES, N)
    order = np.argsort(y)
    src = rng.integers(0, N, 56_000)
    same = rng.random(src.size) < 0.8
    within = order[np.searchsorted(y[order], y[src]) + rng.integers(0, np.bincount(y).min(), src.size)]
    dst = np.where(same, within, rng.integers(0, N, src.size))
    adj = sp.coo_matrix((np.ones(src.size, "float32"), (src, dst)), shape=(N, N)).tocsr()
    adj = adj.maximum(adj.T)
    topics = rng.dirichlet(np.full(N_WORDS, 0.05), N_CLASSES)
    words = np.stack([rng.multinomial(18, topics[c] * 0.6 + 0.4 / N_WORDS) for c in y])
    return adj, words.astype("float32"), y.astype("int32")


def normalise(adj):
    adj = adj + sp.eye(N, dtype="float32")
    deg = np.asarray(adj.sum(1)).ravel()
    half = sp.diags(deg ** -0.5)
    return (half @ adj @ half).tocoo()


def to_tensor(coo):
    coo = coo.tocsr().sorted_indices().tocoo()
    idx = np.stack([coo.row, coo.col], axis=1).astype("int64")
    return tf.SparseTensor(idx, coo.data.astype("float32"), coo.shape)


class APPNP(keras.Model):
    """Predict, then propagate (Gasteiger et al. 2019)."""

    def __init__(self, adj):
        super().__init__()
        self.adj = adj
        self.drop = layers.Dropout(0.5)
        self.w1 = layers.Dense(HIDDEN, activation="relu")
        self.w2 = layers.Dense(N_CLASSES)

    def call(self, x, training=None):
        h = self.w1(x)
        z = h = self.w2(self.drop(h, training=training))
        for _ in range(HOPS):
            z = (1 - TELEPORT) * tf.sparse.sparse_dense_matmul(self.adj, z) + TELEPORT * h
        return z


def main():
    adj, x, y = citation_graph()
    x = GaussianRandomProjection(N_FEATURES, random_state=SEED).fit_transform(x)
    x = StandardScaler().fit_transform(x).astype("float32")
    model = APPNP(to_tensor(normalise(adj)))
    features, labels = tf.constant(x), tf.constant(y)
    rng = np.random.default_rng(SEED)
    perm = rng.permutation(N)
    train_idx = tf.constant(perm[:1400])
    valid_idx = tf.constant(perm[1400:2900])
    model(features)
    opt = keras.optimizers.Adam(0.01)
    opt.build(model.trainable_variables)
    ce = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_step():
        with tf.GradientTape() as tape:
            logits = model(features, training=True)
            loss = ce(tf.gather(labels, train_idx), tf.gather(logits, train_idx))
            loss += 5e-4 * tf.nn.l2_loss(model.w1.kernel)
        grads = tape.gradient(loss, model.trainable_variables)
        opt.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    @tf.function
    def accuracy(idx):
        pred = tf.argmax(model(features, training=False), axis=1, output_type=tf.int32)
        return tf.reduce_mean(tf.cast(tf.gather(pred, idx) == tf.gather(labels, idx), tf.float32))

    best, best_weights = 0.0, None
    for epoch in range(EPOCHS):
        loss = train_step()
        if epoch % 20 == 19:
            acc = float(accuracy(valid_idx))
            if acc > best:
                best, best_weights = acc, model.get_weights()
            print(f"epoch {epoch + 1} loss {float(loss):.4f} valid accuracy {acc:.3f}")
    model.set_weights(best_weights)
    print(f"best valid accuracy {best:.3f}")


if __name__ == "__main__":
    main()
