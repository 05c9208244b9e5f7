"""Distil a wide CNN into a narrow one."""
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

TEMPERATURE, ALPHA = 4.0, 0.1


def cnn(width, name):
    return tf.keras.Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Conv2D(width, 3, strides=2, padding="same", activation="relu"),
            layers.Conv2D(2 * width, 3, strides=2, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dense(10),
        ],
        name=name,
    )


teacher = cnn(32, "teacher")
student = cnn(12, "student")
teacher.trainable = False
optimizer = tf.keras.optimizers.Adam(1e-3)
hard_loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
soft_loss = tf.keras.losses.KLDivergence()


@tf.function
def distill_step(x, y):
    flip = tf.random.uniform(()) < 0.5
    x = tf.cond(flip, lambda: tf.reverse(x, [2]), lambda: x)
    with tf.GradientTape() as tape:
        teacher_logits = teacher(x, training=False)
        student_logits = student(x, training=True)
        hard = hard_loss(y, student_logits)
        soft = soft_loss(tf.nn.softmax(teacher_logits / TEMPERATURE), tf.nn.softmax(student_logits / TEMPERATURE))
        loss = ALPHA * hard + (1 - ALPHA) * soft * TEMPERATURE**2
    grads = tape.gradient(loss, student.trainable_variables)
    optimizer.apply_gradients(zip(grads, student.trainable_variables))
    return loss


rng = np.random.default_rng(0)
x = rng.random((3840, 28, 28, 1), dtype="float32")
y = rng.integers(0, 10, 3840)
ds = tf.data.Dataset.from_tensor_slices((x, y)).cache().shuffle(2000).batch(64).prefetch(2)
for epoch in range(3):
    for bx, by in ds:
        loss = distill_step(bx, by)
    print("epoch", epoch, float(loss))
