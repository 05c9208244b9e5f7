"""Reptile meta-learning on sinusoid regression."""
import numpy as np
import tensorflow as tf
from tensorflow import keras

INNER, SHOTS, META_LR, META_STEPS = 4, 16, 0.2, 70
rng = np.random.default_rng(0)
keras.utils.set_random_seed(0)


def sample_task():
    amp, phase = rng.uniform(0.5, 5), rng.uniform(0, np.pi)
    x = rng.uniform(-5, 5, (SHOTS, 1)).astype("float32")
    return tf.constant(x), tf.constant((amp * np.sin(x + phase)).astype("float32"))


def make_model():
    return keras.Sequential([
        keras.Input((1,)),
        keras.layers.Dense(64, activation="tanh"),
        keras.layers.Dense(64, activation="tanh"),
        keras.layers.Dense(1),
    ])


meta = make_model()
optimizer = keras.optimizers.SGD(0.02)


def adapt(model, x, y):
    for _ in range(INNER):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        grads = tape.gradient(loss, model.trainable_variables)
        for v, g in zip(model.trainable_variables, grads):
            v.assign(v - 0.02 * g)
    return loss


losses = []
for it in range(META_STEPS):
    x, y = sample_task()
    learner = keras.models.clone_model(meta)
    learner.set_weights(meta.get_weights())
    losses.append(float(adapt(learner, x, y)))
    # move the meta weights towards the adapted ones
    delta = [w - l for w, l in zip(meta.trainable_variables, learner.trainable_variables)]
    optimizer.learning_rate = META_LR * (1 - it / META_STEPS)
    optimizer.apply_gradients(zip(delta, meta.trainable_variables))
    if it % 20 == 19:
        print(it + 1, round(np.mean(losses[-20:]), 4))
