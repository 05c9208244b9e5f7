import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

T = 200
SIZE = 16
betas = np.linspace(1e-4, 0.02, T)
alpha_bar = tf.constant(np.cumprod(1 - betas), tf.float32)


def block(x, emb, width):
    h = layers.GroupNormalization(4)(x) if x.shape[-1] % 4 == 0 else x
    h = layers.Conv2D(width, 3, padding="same", activation="swish")(h)
    h = h + layers.Dense(width)(emb)[:, None, None, :]
    h = layers.Conv2D(width, 3, padding="same", activation="swish")(h)
    if x.shape[-1] != width:
        x = layers.Conv2D(width, 1)(x)
    return x + h


def make_unet():
    image = layers.Input((SIZE, SIZE, 1))
    step = layers.Input((), dtype="int32")
    emb = layers.Dense(32, activation="swish")(layers.Embedding(T, 32)(step))
    a = block(image, emb, 8)
    b = block(layers.AveragePooling2D(2)(a), emb, 16)
    c = block(layers.AveragePooling2D(2)(b), emb, 16)
    b = block(layers.concatenate([layers.UpSampling2D()(c), b]), emb, 16)
    a = block(layers.concatenate([layers.UpSampling2D()(b), a]), emb, 8)
    return tf.keras.Model([image, step], layers.Conv2D(1, 3, padding="same")(a))


model = make_unet()
ema_model = make_unet()
ema_model.set_weights(model.get_weights())
optimizer = tf.keras.optimizers.Adam(2e-4)


def update_ema(decay=0.999):
    for w, e in zip(model.weights, ema_model.weights):
        e.assign(decay * e + (1 - decay) * w)


@tf.function
def train_step(x):
    t = tf.random.uniform((tf.shape(x)[0],), 0, T, tf.int32)
    noise = tf.random.normal(tf.shape(x))
    a = tf.gather(alpha_bar, t)[:, None, None, None]
    with tf.GradientTape() as tape:
        pred = model([tf.sqrt(a) * x + tf.sqrt(1 - a) * noise, t], training=True)
        loss = tf.reduce_mean((pred - noise) ** 2)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    return loss


images = np.random.default_rng(0).normal(size=(1600, SIZE, SIZE, 1)).astype("float32")
ds = tf.data.Dataset.from_tensor_slices(images).shuffle(1600).batch(16).repeat().prefetch(2)
for i, x in enumerate(ds.take(120)):
    loss = train_step(x)
    update_ema()
    if i % 40 == 0:
        print(i, float(loss))
