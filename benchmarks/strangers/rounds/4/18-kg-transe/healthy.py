"""TransE on a synthetic knowledge graph (link prediction), margin ranking loss.

Bordes et al., "Translating Embeddings for Modeling Multi-relational Data", NIPS 2013.
"""
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf


class Config:
    num_entities = 40_000
    num_relations = 60
    num_triples = 120_000
    dim = 64
    batch_size = 512
    num_negatives = 4
    margin = 1.0
    lr = 0.05
    steps = 900
    log_every = 100
    seed = 11


class Graph:
    def __init__(self, cfg):
        self.cfg = cfg
        self.rng = np.random.default_rng(cfg.seed)
        types = self.rng.integers(0, cfg.num_relations, cfg.num_entities)
        head = self.rng.zipf(1.3, cfg.num_triples) % cfg.num_entities
        relation = (types[head] + self.rng.integers(0, 5, cfg.num_triples)) % cfg.num_relations
        tail = (head * 31 + relation * 977 + self.rng.integers(0, 50, cfg.num_triples)) % cfg.num_entities
        self.triples = np.stack([head, relation, tail], axis=1).astype("int32")

    def batches(self):
        cfg = self.cfg
        while True:
            order = self.rng.permutation(len(self.triples))
            for start in range(0, len(order) - cfg.batch_size + 1, cfg.batch_size):
                positive = self.triples[order[start : start + cfg.batch_size]]
                negative = np.repeat(positive, cfg.num_negatives, axis=0)
                corrupt_head = self.rng.random(len(negative)) < 0.5
                fake = self.rng.integers(0, cfg.num_entities, len(negative), dtype="int32")
                negative[:, 0] = np.where(corrupt_head, fake, negative[:, 0])
                negative[:, 2] = np.where(corrupt_head, negative[:, 2], fake)
                yield positive, negative


class TransE(tf.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        bound = 6.0 / np.sqrt(cfg.dim)
        init = tf.random_uniform_initializer(-bound, bound, seed=cfg.seed)
        self.entities = tf.Variable(
            tf.nn.l2_normalize(init((cfg.num_entities, cfg.dim)), axis=1), name="entities"
        )
        self.relations = tf.Variable(
            tf.nn.l2_normalize(init((cfg.num_relations, cfg.dim)), axis=1), name="relations"
        )

    def distance(self, triples):
        h = tf.gather(self.entities, triples[:, 0])
        r = tf.gather(self.relations, triples[:, 1])
        t = tf.gather(self.entities, triples[:, 2])
        return tf.reduce_sum(tf.abs(h + r - t), axis=1)

    def loss(self, positive, negative):
        good = tf.repeat(self.distance(positive), self.cfg.num_negatives)
        bad = self.distance(negative)
        return tf.reduce_mean(tf.nn.relu(self.cfg.margin + good - bad))

    def normalize(self, positive, negative):
        """Keep the entities on the unit sphere, as the paper asks for."""
        touched = tf.concat(
            [positive[:, 0], positive[:, 2], negative[:, 0], negative[:, 2]], axis=0
        )
        touched, _ = tf.unique(touched)
        rows = tf.nn.l2_normalize(tf.gather(self.entities, touched), axis=1)
        self.entities.scatter_update(tf.IndexedSlices(rows, touched))

    @tf.function(
        input_signature=[tf.TensorSpec([None, 3], tf.int32), tf.TensorSpec([None, 3], tf.int32)]
    )
    def train_step(self, positive, negative):
        with tf.GradientTape() as tape:
            loss = self.loss(positive, negative)
        d_entities, d_relations = tape.gradient(loss, [self.entities, self.relations])
        lr = self.cfg.lr * self.cfg.batch_size
        self.entities.scatter_sub(
            tf.IndexedSlices(lr * d_entities.values, d_entities.indices)
        )
        self.relations.scatter_sub(
            tf.IndexedSlices(lr * d_relations.values, d_relations.indices)
        )
        self.normalize(positive, negative)
        return loss


def mean_rank(model, triples):
    ranks = []
    for h, r, t in triples:
        guess = model.entities[h] + model.relations[r]
        distances = tf.reduce_sum(tf.abs(model.entities - guess), axis=1).numpy()
        ranks.append((distances < distances[t]).sum() + 1)
    return float(np.mean(ranks))


def main():
    cfg = Config()
    tf.random.set_seed(cfg.seed)
    graph = Graph(cfg)
    model = TransE(cfg)
    started, running = time.time(), 0.0
    for step, (positive, negative) in enumerate(graph.batches(), start=1):
        running += float(model.train_step(positive, negative))
        if step % cfg.log_every == 0:
            print(f"step {step}  loss {running / cfg.log_every:.4f}  {time.time() - started:.1f} s")
            running = 0.0
        if step == cfg.steps:
            break
    print("mean rank", mean_rank(model, graph.triples[:40]))


if __name__ == "__main__":
    main()
