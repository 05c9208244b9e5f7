"""Fine-tune a tiny detection head, one image at a time."""
import numpy as np
import tensorflow as tf

GRID = 12
rng = np.random.default_rng(0)


def sample():
    image = rng.random((1, 96, 96, 3), dtype="float32")
    n = int(np.clip(rng.geometric(0.25), 1, 12))
    centers = rng.random((n, 2)).astype("float32")
    sizes = (0.05 + 0.2 * rng.random((n, 2))).astype("float32")
    return tf.constant(image), tf.constant(np.concatenate([centers, sizes], 1))


backbone = tf.keras.Sequential(
    [
        tf.keras.Input((96, 96, 3)),
        tf.keras.layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
        tf.keras.layers.Conv2D(5, 1),
    ]
)
optimizer = tf.keras.optimizers.Adam(1e-3)


def detection_loss(pred, boxes):
    pred = tf.reshape(pred, (GRID * GRID, 5))
    cell = tf.cast(boxes[:, :2] * GRID, tf.int32)
    index = tf.clip_by_value(cell[:, 1] * GRID + cell[:, 0], 0, GRID * GRID - 1)
    objectness = tf.clip_by_value(tf.math.unsorted_segment_sum(tf.ones_like(boxes[:, 0]), index, GRID * GRID), 0, 1)
    conf = tf.nn.sigmoid_cross_entropy_with_logits(objectness, pred[:, 4])
    coords = tf.abs(tf.gather(pred[:, :4], index) - boxes)
    return tf.reduce_mean(conf) + tf.reduce_mean(coords)


@tf.function
def train_step(image, boxes):
    with tf.GradientTape() as tape:
        loss = detection_loss(backbone(image, training=True), boxes)
    grads = tape.gradient(loss, backbone.trainable_variables)
    optimizer.apply_gradients(zip(grads, backbone.trainable_variables))
    return loss


running = 0.0
for i in range(150):
    image, boxes = sample()
    loss = train_step(image, boxes)
    running = 0.9 * running + 0.1 * float(loss)
    if i % 30 == 0:
        print(i, running)
