"""Multi-task perception toy: depth, lane mask, steering and a consistency term on one trunk."""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

H, W, BATCH, STEPS = 32, 48, 6, 70
WEIGHTS = {"depth": 1.0, "lane": 0.5, "steer": 2.0, "smooth": 0.1}
keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
img = rng.random((256, H, W, 3)).astype("float32")
depth = img.mean(-1, keepdims=True) * np.linspace(0, 1, H, dtype="float32")[None, :, None, None]
lane = (img[..., :1] > 0.6).astype("float32")
steer = img[:, :, : W // 2, 0].mean((1, 2)) - img[:, :, W // 2 :, 0].mean((1, 2))

inp = keras.Input((H, W, 3))
x = inp
for width in (16, 24, 24, 24):
    x = layers.Conv2D(width, 3, padding="same", activation="relu")(x)
pooled = layers.GlobalAveragePooling2D()(x)
net = keras.Model(inp, [layers.Conv2D(1, 1)(x), layers.Conv2D(1, 1)(x), layers.Dense(1)(pooled)])
opt = keras.optimizers.Adam(1e-3)
opt.build(net.trainable_variables)


def losses(x, d, l, s):
    pd, pl, ps = net(x, training=True)
    dy = pd[:, 1:] - pd[:, :-1]
    return {
        "depth": tf.reduce_mean(tf.abs(pd - d)),
        "lane": tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=l, logits=pl)),
        "steer": tf.reduce_mean(tf.square(ps[:, 0] - s)),
        "smooth": tf.reduce_mean(tf.square(dy)),
    }


@tf.function
def train_step(x, d, l, s):
    with tf.GradientTape() as tape:
        terms = losses(x, d, l, s)
        total = tf.add_n([WEIGHTS[name] * term for name, term in terms.items()])
    grads = tape.gradient(total, net.trainable_variables)
    opt.apply_gradients(zip(grads, net.trainable_variables))
    return terms


ds = tf.data.Dataset.from_tensor_slices((img, depth, lane, steer)).shuffle(256).batch(BATCH).repeat().prefetch(2)
for i, batch in enumerate(ds.take(STEPS)):
    terms = train_step(*batch)
    if i % 20 == 0:
        print(i, {k: round(float(v), 4) for k, v in terms.items()})
