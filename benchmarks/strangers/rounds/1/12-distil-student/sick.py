"""Distil a large CNN into a small one."""
import keras
import numpy as np
from keras import layers, ops

rng = np.random.default_rng(0)
x = rng.random((800, 32, 32, 3), dtype="float32")
y = rng.integers(0, 10, 800)


def cnn(widths):
    net = [layers.Input((32, 32, 3))]
    for w in widths:
        net += [layers.Conv2D(w, 3, padding="same", activation="relu"), layers.MaxPooling2D()]
    return keras.Sequential(net + [layers.GlobalAveragePooling2D(), layers.Dense(10)])


teacher = cnn([64, 128, 256])
teacher.trainable = False


class Distiller(keras.Model):
    def __init__(self, student, temperature=5.0, alpha=0.1):
        super().__init__()
        self.student = student
        self.temperature, self.alpha = temperature, alpha
        self.ce = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.kl = keras.losses.KLDivergence()

    def call(self, inputs, training=False):
        return self.student(inputs, training=training)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        teacher_pred = teacher(x, training=False)
        soft_t = ops.softmax(teacher_pred / self.temperature)
        soft_s = ops.softmax(y_pred / self.temperature)
        return self.alpha * self.ce(y, y_pred) + (1 - self.alpha) * self.kl(soft_t, soft_s) * self.temperature**2


distiller = Distiller(cnn([16, 32, 64]))
distiller.compile(optimizer=keras.optimizers.Adam(1e-3), metrics=["sparse_categorical_accuracy"])
distiller.fit(x, y, batch_size=32, epochs=4, verbose=2)
