"""Semi-supervised digit-like classification with a mean-teacher ensemble.

Tarvainen & Valpola, "Mean teachers are better role models", NIPS 2017.
The teacher is an exponential moving average of the student's weights.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(17)

NUM_CLASSES = 10
IMAGE = 20
LABELLED = 400
UNLABELLED = 4000


def make_data(rng):
    prototypes = rng.normal(size=(NUM_CLASSES, IMAGE, IMAGE, 1))
    for _ in range(2):
        prototypes = (prototypes + np.roll(prototypes, 1, 1) + np.roll(prototypes, 1, 2)) / 1.7
    y = rng.integers(NUM_CLASSES, size=LABELLED + UNLABELLED)
    shift = rng.integers(-2, 3, size=(len(y), 2))
    x = np.stack([np.roll(prototypes[c], s, (0, 1)) for c, s in zip(y, shift)])
    x += rng.normal(0, 0.8, x.shape)
    return x.astype("float32"), y.astype("int32")


def residual_block(x, filters):
    y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
    y = layers.BatchNormalization()(y)
    y = layers.ReLU()(y)
    y = layers.Conv2D(filters, 3, padding="same", use_bias=False)(y)
    y = layers.BatchNormalization()(y)
    if x.shape[-1] != filters:
        x = layers.Conv2D(filters, 1, use_bias=False)(x)
    return layers.ReLU()(layers.Add()([x, y]))


def build_network(name):
    inputs = keras.Input((IMAGE, IMAGE, 1))
    x = layers.Conv2D(8, 3, strides=2, padding="same")(inputs)
    for filters in (8, 8, 12, 12, 16, 16):
        x = residual_block(x, filters)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(NUM_CLASSES)(x), name=name)


class MeanTeacher:
    def __init__(self, decay=0.99, consistency=2.0):
        self.student = build_network("student")
        self.teacher = build_network("teacher")
        self.teacher.set_weights(self.student.get_weights())
        self.teacher.trainable = False
        self.decay = decay
        self.consistency = consistency
        self.optimizer = keras.optimizers.Adam(2e-3)

    @tf.function
    def train_step(self, x, y, u):
        noisy_a = u + tf.random.normal(tf.shape(u), stddev=0.2)
        noisy_b = u + tf.random.normal(tf.shape(u), stddev=0.2)
        target = tf.nn.softmax(self.teacher(noisy_b, training=False))
        with tf.GradientTape() as tape:
            logits = self.student(tf.concat([x, noisy_a], axis=0), training=True)
            n = tf.shape(x)[0]
            supervised = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits[:n])
            )
            gap = tf.reduce_mean(tf.square(tf.nn.softmax(logits[n:]) - target))
            loss = supervised + self.consistency * gap
        grads = tape.gradient(loss, self.student.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.student.trainable_variables))
        return supervised, gap

    def update_teacher(self):
        student_weights = self.student.get_weights()
        teacher_weights = self.teacher.get_weights()
        averaged = []
        for s, t in zip(student_weights, teacher_weights):
            averaged.append(self.decay * t + (1.0 - self.decay) * s)
        self.teacher.set_weights(averaged)

    def fit(self, labelled, unlabelled, epochs):
        for epoch in range(epochs):
            history = []
            for (x, y), u in tf.data.Dataset.zip((labelled, unlabelled)):
                supervised, gap = self.train_step(x, y, u)
                self.update_teacher()
                history.append((supervised, gap))
            supervised, gap = np.mean(history, axis=0)
            print(f"epoch {epoch + 1}: supervised {supervised:.4f} consistency {gap:.5f}")


def accuracy(model, x, y):
    return float(np.mean(np.argmax(model(x, training=False), axis=1) == y))


def main():
    x, y = make_data(np.random.default_rng(17))
    labelled = tf.data.Dataset.from_tensor_slices((x[:LABELLED], y[:LABELLED]))
    labelled = labelled.shuffle(LABELLED, seed=1).repeat().batch(8)
    unlabelled = tf.data.Dataset.from_tensor_slices(x[LABELLED:])
    unlabelled = unlabelled.shuffle(UNLABELLED, seed=2).batch(24, drop_remainder=True).take(100)
    learner = MeanTeacher()
    learner.fit(labelled.prefetch(2), unlabelled.prefetch(2), epochs=3)
    print("student", accuracy(learner.student, x[-500:], y[-500:]))
    print("teacher", accuracy(learner.teacher, x[-500:], y[-500:]))


if __name__ == "__main__":
    main()
