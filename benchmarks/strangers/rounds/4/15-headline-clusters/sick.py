"""Deep embedded clustering of news headlines.

Headlines arrive as tf-idf rows; an autoencoder is trained jointly with soft assignments
to topic centroids (Student's t kernel, Xie et al. 2016).
"""
import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf


def synthetic_headlines(n, vocab, topics, seed):
    rng = np.random.default_rng(seed)
    topic_words = rng.dirichlet(np.full(vocab, 0.02), size=topics)
    labels = rng.integers(topics, size=n)
    counts = np.zeros((n, vocab), "float32")
    for i, k in enumerate(labels):
        words = rng.choice(vocab, size=12, p=topic_words[k])
        np.add.at(counts[i], words, 1.0)
    df = (counts > 0).sum(0) + 1.0
    tfidf = counts * np.log(n / df).astype("float32")
    tfidf /= np.linalg.norm(tfidf, axis=1, keepdims=True) + 1e-6
    return tfidf.astype("float32"), labels


class DEC(keras.Model):
    def __init__(self, vocab, n_clusters, dim, gamma=0.1, alpha=1.0):
        super().__init__()
        self.encoder = keras.Sequential(
            [keras.layers.Dense(256, "relu"), keras.layers.Dense(dim)], name="encoder"
        )
        self.decoder = keras.Sequential(
            [keras.layers.Dense(256, "relu"), keras.layers.Dense(vocab)], name="decoder"
        )
        self.n_clusters = n_clusters
        self.dim = dim
        self.gamma = gamma
        self.alpha = alpha
        self.centroids = self.add_weight(
            shape=(n_clusters, dim), initializer="random_normal", name="centroids"
        )

    def assign(self, z):
        """Soft assignment q_ij of every embedding to every centroid."""
        distance = tf.reduce_sum(
            tf.square(tf.expand_dims(z, axis=1) - self.centroids), axis=2
        )
        q = 1.0 / (1.0 + distance / self.alpha)
        q = q ** ((self.alpha + 1.0) / 2.0)
        return q / tf.reduce_sum(q, axis=1, keepdims=True)

    @staticmethod
    def target(q):
        weight = q**2 / (tf.reduce_sum(q, axis=0) + 1e-8)
        return tf.stop_gradient(weight / tf.reduce_sum(weight, axis=1, keepdims=True))

    def losses_for(self, x):
        z = self.encoder(x)
        reconstruction = tf.reduce_mean(tf.reduce_sum(tf.square(self.decoder(z) - x), axis=1))
        q = self.assign(z)
        p = self.target(q)
        kl = tf.reduce_mean(tf.reduce_sum(p * tf.math.log((p + 1e-8) / (q + 1e-8)), axis=1))
        return reconstruction, kl


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = keras.optimizers.Adam(lr)

    @tf.function
    def step(self, x):
        with tf.GradientTape() as tape:
            reconstruction, kl = self.model.losses_for(x)
            loss = reconstruction + self.model.gamma * kl
        variables = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return reconstruction, kl

    def run(self, dataset, epochs):
        for epoch in range(epochs):
            sums = np.zeros(2)
            for n, x in enumerate(dataset, start=1):
                sums += [float(v) for v in self.step(x)]
            print(f"epoch {epoch}: reconstruction {sums[0] / n:.4f}  kl {sums[1] / n:.4f}")


def purity(assigned, labels):
    total = 0
    for k in np.unique(assigned):
        total += np.bincount(labels[assigned == k]).max()
    return total / len(labels)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--vocab", type=int, default=800)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed)
    x, labels = synthetic_headlines(256 * 14, args.vocab, 40, args.seed)
    dataset = tf.data.Dataset.from_tensor_slices(x).cache().shuffle(len(x), seed=args.seed)
    dataset = dataset.batch(args.batch_size, drop_remainder=True).prefetch(2)

    model = DEC(args.vocab, args.clusters, args.dim)
    Trainer(model, lr=1e-3).run(dataset, args.epochs)
    assigned = np.argmax(model.assign(model.encoder(x[:1024])).numpy(), axis=1)
    print("purity", round(purity(assigned, labels[:1024]), 3))


if __name__ == "__main__":
    main()
