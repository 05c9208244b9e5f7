"""Gradient accumulation: a custom loop that applies the gradients of four micro-batches at once."""

import sys

import tensorflow as tf

from stopwatch import tick

MICRO, ACCUMULATE, EPOCHS = 16, 4, 2


def build():
    """Return a small convolutional classifier."""
    return tf.keras.Sequential(
        [
            tf.keras.Input((32, 32, 3)),
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.Conv2D(32, 3, activation="relu"),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(5),
        ]
    )


class Accumulator:
    """Sums gradients until it is told to apply them."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.sums = [tf.Variable(tf.zeros_like(v)) for v in model.trainable_variables]
        optimizer.build(model.trainable_variables)

    @tf.function
    def micro_step(self, x, y):
        """Add the gradients of one micro-batch."""
        with tf.GradientTape() as tape:
            loss = self.loss(y, self.model(x, training=True)) / ACCUMULATE
        for total, grad in zip(
            self.sums, tape.gradient(loss, self.model.trainable_variables), strict=True
        ):
            total.assign_add(grad)
        return loss

    @tf.function
    def apply(self):
        """Use the sums and begin anew."""
        self.optimizer.apply_gradients(zip(self.sums, self.model.trainable_variables, strict=True))
        for total in self.sums:
            total.assign(tf.zeros_like(total))


def progress(done, of):
    """Draw a bar on stderr."""
    bar = "#" * (20 * done // of)
    sys.stderr.write(f"\r[{bar:<20}] {done}/{of}" + ("\n" if done == of else ""))


def main():
    """Train for two epochs."""
    tf.keras.utils.set_random_seed(21)
    x = tf.random.stateless_normal((96 * MICRO, 32, 32, 3), seed=(2, 1))
    y = tf.argmax(tf.reduce_sum(x, axis=(1, 2)) @ tf.ones((3, 5)) * tf.range(5.0), axis=1)
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(MICRO).prefetch(2)
    trainer = Accumulator(build(), tf.keras.optimizers.Adam(1e-3))
    for epoch in range(EPOCHS):
        running = 0.0
        for step, (images, labels) in enumerate(dataset, start=1):
            tick()
            running += float(trainer.micro_step(images, labels))
            if step % ACCUMULATE == 0:
                trainer.apply()
                progress(step, 96)
        print(f"epoch {epoch}: loss {running / 96 * ACCUMULATE:.4f}")


if __name__ == "__main__":
    main()
