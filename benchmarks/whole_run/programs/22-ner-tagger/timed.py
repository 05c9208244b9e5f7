import phase_timer
import numpy as np
import tensorflow as tf


class Tagger(tf.keras.Model):
    def __init__(self, vocab, tags):
        super().__init__()
        self.emb = tf.keras.layers.Embedding(vocab, 32)
        self.c1 = tf.keras.layers.Conv1D(64, 5, padding="same", activation="relu")
        self.c2 = tf.keras.layers.Conv1D(64, 5, padding="same", activation="relu")
        self.out = tf.keras.layers.Dense(tags)

    def call(self, ids, training=False):
        return self.out(self.c2(self.c1(self.emb(ids))))


def sentences(n, seed, length=30, vocab=3000, tags=9):
    rng = np.random.default_rng(seed)
    ids = rng.integers(1, vocab, (n, length))
    y = (ids % 7 + (np.roll(ids, 1, axis=1) % 3 == 0)) % tags
    return ids.astype("int32"), y.astype("int32")


phase_timer._T('preparing')
train_ds = tf.data.Dataset.from_tensor_slices(sentences(6000, 0)).shuffle(6000).batch(64).prefetch(2)
test_ds = tf.data.Dataset.from_tensor_slices(sentences(1500, 1)).batch(1)

phase_timer._T('building')
model = Tagger(3000, 9)
optimizer = tf.keras.optimizers.Adam(2e-3)
loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=True))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss



def test():
    test_loss = tf.keras.metrics.Mean()
    test_acc = tf.keras.metrics.SparseCategoricalAccuracy()
    for x, y in test_ds:
        logits = model(x)
        test_loss.update_state(loss_fn(y, logits))
        test_acc.update_state(y, logits)
    return float(test_loss.result()), float(test_acc.result())


for epoch in range(3):
    phase_timer._T('training_steps')
    for x, y in train_ds:
        loss = train_step(x, y)
    phase_timer._T('evaluation')
    l, a = test()
    print(f"Epoch {epoch + 1}: train {float(loss):.4f} test {l:.4f} acc {a:.4f}")
phase_timer._T('other')
