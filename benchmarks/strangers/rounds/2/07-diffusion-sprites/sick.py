"""DDPM on small synthetic sprites with an EMA copy for sampling."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

SIZE, BATCH, T, STEPS, DECAY = 16, 16, 400, 75, 0.995
keras.utils.set_random_seed(0)

betas = np.linspace(1e-4, 0.02, T)
alpha_bar = tf.constant(np.cumprod(1 - betas), tf.float32)


def sprites(n):
    yy, xx = np.mgrid[:SIZE, :SIZE]
    c = np.random.randint(4, 12, (n, 2, 1, 1))
    r = np.random.uniform(2, 5, (n, 1, 1))
    disc = ((yy - c[:, 0]) ** 2 + (xx - c[:, 1]) ** 2 < r**2).astype("float32")
    return disc[..., None] * np.random.uniform(0.3, 1, (n, 1, 1, 3)).astype("float32") * 2 - 1


def block(x, emb, width):
    h = layers.Conv2D(width, 3, padding="same")(x)
    h = layers.Add()([h, layers.Reshape((1, 1, width))(layers.Dense(width)(emb))])
    h = layers.Activation("swish")(layers.GroupNormalization(8)(h))
    h = layers.Conv2D(width, 3, padding="same")(h)
    skip = x if x.shape[-1] == width else layers.Conv2D(width, 1)(x)
    return layers.Add()([h, skip])


def build():
    img, t = keras.Input((SIZE, SIZE, 3)), keras.Input((1,))
    emb = layers.Dense(64, activation="swish")(layers.Dense(64, activation="swish")(t))
    a = block(layers.Conv2D(16, 1)(img), emb, 16)
    b = block(layers.AveragePooling2D(2)(a), emb, 32)
    c = block(layers.AveragePooling2D(2)(b), emb, 48)
    d = block(layers.Concatenate()([layers.UpSampling2D()(c), b]), emb, 32)
    e = block(layers.Concatenate()([layers.UpSampling2D()(d), a]), emb, 16)
    return keras.Model([img, t], layers.Conv2D(3, 1)(e))


model, ema = build(), build()
ema.set_weights(model.get_weights())
opt = keras.optimizers.Adam(1e-3)
opt.build(model.trainable_variables)


@tf.function
def train_step(x0):
    t = tf.random.uniform((BATCH,), 0, T, tf.int32)
    ab = tf.gather(alpha_bar, t)[:, None, None, None]
    eps = tf.random.normal(tf.shape(x0))
    xt = tf.sqrt(ab) * x0 + tf.sqrt(1 - ab) * eps
    with tf.GradientTape() as tape:
        pred = model([xt, tf.cast(t, tf.float32)[:, None] / T], training=True)
        loss = tf.reduce_mean(tf.square(pred - eps))
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
    return loss


def update_ema():
    new = [DECAY * e + (1 - DECAY) * w for e, w in zip(ema.get_weights(), model.get_weights())]
    ema.set_weights(new)


data = sprites(512)
ds = tf.data.Dataset.from_tensor_slices(data).shuffle(512).repeat().batch(BATCH).prefetch(2)
for i, x0 in enumerate(ds.take(STEPS)):
    loss = train_step(x0)
    update_ema()
    if i % 40 == 0:
        print(i, float(loss))
