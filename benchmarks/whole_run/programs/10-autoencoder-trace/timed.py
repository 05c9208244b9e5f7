import phase_timer
import numpy as np
import tensorflow as tf
phase_timer._T('other')

BATCH, DIM, STEPS = 256, 1024, 1100


class AE(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.enc = tf.keras.Sequential([tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(64)])
        self.dec = tf.keras.Sequential([tf.keras.layers.Dense(256, activation="relu"), tf.keras.layers.Dense(DIM)])

    def call(self, x):
        z = self.enc(x)
        return self.dec(z), z


phase_timer._T('building')
model = AE()
opt = tf.keras.optimizers.Adam(1e-3)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        rec, z = model(x)
        loss = tf.reduce_mean(tf.square(rec - x))
    g = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(g, model.trainable_variables))
    return loss, rec, z


phase_timer._T('preparing')
basis = np.random.default_rng(0).normal(size=(32, DIM)).astype("float32")


def batches():
    rng = np.random.default_rng(1)
    while True:
        yield (rng.normal(size=(BATCH, 32)).astype("float32") @ basis
               + 0.1 * rng.normal(size=(BATCH, DIM)).astype("float32"))


ds = tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((BATCH, DIM), tf.float32)).prefetch(2)

phase_timer._T('training_steps')
history = []
for step, x in enumerate(ds.take(STEPS)):
    loss, rec, z = train_step(x)
    history.append((loss, rec, z))
    if step % 100 == 0:
        recent = np.mean([float(h[0]) for h in history[-100:]])
        print("step", step, "loss %.4f" % recent)
phase_timer._T('other')
print("final", float(history[-1][0]))
