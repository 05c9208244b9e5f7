"""A whole epoch inside one `tf.function`: `for x, y in ds` is a loop in the graph."""

import argparse

import tensorflow as tf

from stopwatch import tick


def dataset(batches, batch):
    """Return images whose label is the quarter that is brightest."""
    images = tf.random.stateless_uniform((batches * batch, 32, 32, 1), seed=(6, 6))
    quarters = tf.nn.avg_pool2d(images, 16, 16, "VALID")
    labels = tf.argmax(tf.reshape(quarters, (-1, 4)), axis=1)
    return tf.data.Dataset.from_tensor_slices((images, labels)).batch(batch).prefetch(1)


class Classifier(tf.keras.Model):
    """Three layers."""

    def __init__(self):
        super().__init__()
        self.conv = tf.keras.layers.Conv2D(96, 5, activation="relu")
        self.pool = tf.keras.layers.MaxPooling2D(4)
        self.head = tf.keras.layers.Dense(4)

    def call(self, x):
        """Return the logits."""
        x = self.pool(self.conv(x))
        return self.head(tf.reshape(x, (-1, 7 * 7 * 96)))


def make_epoch(model, optimizer):
    """Return a function that trains for one epoch."""
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def train_epoch(ds):
        total, count = tf.constant(0.0), tf.constant(0.0)
        for x, y in ds:
            with tf.GradientTape() as tape:
                loss = loss_of(y, model(x, training=True))
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
            total += loss
            count += 1.0
        return total / count

    return train_epoch


def main():
    """Train for as many epochs as wanted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batches", type=int, default=20)
    args = parser.parse_args()

    tf.keras.utils.set_random_seed(17)
    ds = dataset(args.batches, 64)
    model, optimizer = Classifier(), tf.keras.optimizers.Adam(1e-3)
    model(tf.zeros((1, 32, 32, 1)))
    optimizer.build(model.trainable_variables)
    train_epoch = make_epoch(model, optimizer)
    for epoch in range(args.epochs):
        tick(args.batches)
        loss = train_epoch(ds)
        tick(0)
        if (epoch + 1) % 3 == 0:
            print(f"epoch {epoch + 1}/{args.epochs} mean loss {loss.numpy():.4f}")


if __name__ == "__main__":
    main()
