"""Beta-VAE with KL annealing."""
import keras
import numpy as np
import tensorflow as tf

LATENT, BATCH = 8, 64
rng = np.random.default_rng(0)
images = (rng.random((4096, 28, 28, 1)) > 0.8).astype("float32")

encoder = keras.Sequential([
    keras.layers.Input((28, 28, 1)),
    keras.layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
    keras.layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
    keras.layers.Flatten(),
    keras.layers.Dense(2 * LATENT),
])
decoder = keras.Sequential([
    keras.layers.Input((LATENT,)),
    keras.layers.Dense(7 * 7 * 32, activation="relu"),
    keras.layers.Reshape((7, 7, 32)),
    keras.layers.Conv2DTranspose(32, 3, strides=2, padding="same", activation="relu"),
    keras.layers.Conv2DTranspose(16, 3, strides=2, padding="same", activation="relu"),
    keras.layers.Conv2D(1, 3, padding="same"),
])
optimizer = keras.optimizers.Adam(1e-3)
variables = encoder.trainable_variables + decoder.trainable_variables
optimizer.build(variables)


@tf.function
def train_step(x, beta):
    with tf.GradientTape() as tape:
        mean, logvar = tf.split(encoder(x, training=True), 2, axis=1)
        z = mean + tf.random.normal(tf.shape(mean)) * tf.exp(0.5 * logvar)
        logits = decoder(z, training=True)
        rec = tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits)
        rec = tf.reduce_mean(tf.reduce_sum(rec, axis=[1, 2, 3]))
        kl = -0.5 * tf.reduce_mean(tf.reduce_sum(1 + logvar - mean**2 - tf.exp(logvar), axis=1))
        loss = rec + beta * kl
    grads = tape.gradient(loss, variables)
    optimizer.apply_gradients(zip(grads, variables))
    return rec, kl


ds = tf.data.Dataset.from_tensor_slices(images).shuffle(4096).batch(BATCH, drop_remainder=True).repeat()
step = 0
for batch in ds.take(120):
    beta = min(1.0, (step // 12) / 10)
    rec, kl = train_step(batch, beta)
    if step % 50 == 0:
        print(f"step {step} beta {beta:.2f} rec {float(rec):.2f} kl {float(kl):.3f}")
    step += 1
