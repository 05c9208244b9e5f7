"""The way of the DCGAN tutorial: two networks, two tapes and two steps in one `@tf.function`."""

import tensorflow as tf
from absl import app, flags
from tensorflow.keras import layers

from stopwatch import tick

FLAGS = flags.FLAGS
flags.DEFINE_integer("epochs", 3, "How often to go over the images.")
flags.DEFINE_integer("batch_size", 32, "Images a step.")
flags.DEFINE_integer("noise_dim", 64, "Length of the noise vector.")

cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)


def make_generator():
    """Return a network from noise to an image."""
    return tf.keras.Sequential(
        [
            layers.Dense(7 * 7 * 32, use_bias=False),
            layers.BatchNormalization(),
            layers.LeakyReLU(),
            layers.Reshape((7, 7, 32)),
            layers.Conv2DTranspose(16, 5, strides=2, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.LeakyReLU(),
            layers.Conv2DTranspose(1, 5, strides=2, padding="same", activation="tanh"),
        ]
    )


def make_discriminator():
    """Return a network from an image to a verdict."""
    return tf.keras.Sequential(
        [
            layers.Conv2D(16, 5, strides=2, padding="same"),
            layers.LeakyReLU(),
            layers.Dropout(0.3, seed=1),
            layers.Conv2D(32, 5, strides=2, padding="same"),
            layers.LeakyReLU(),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )


class Trainer:
    """Both networks with their optimizers."""

    def __init__(self):
        self.generator, self.discriminator = make_generator(), make_discriminator()
        self.generator_optimizer = tf.keras.optimizers.Adam(1e-4)
        self.discriminator_optimizer = tf.keras.optimizers.Adam(1e-4)

    @tf.function
    def train_step(self, images):
        """Take a step of each."""
        noise = tf.random.normal([FLAGS.batch_size, FLAGS.noise_dim])
        with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
            generated = self.generator(noise, training=True)
            real = self.discriminator(images, training=True)
            fake = self.discriminator(generated, training=True)
            gen_loss = cross_entropy(tf.ones_like(fake), fake)
            disc_loss = cross_entropy(tf.ones_like(real), real)
            disc_loss += cross_entropy(tf.zeros_like(fake), fake)
        for tape, loss, net, optimizer in (
            (gen_tape, gen_loss, self.generator, self.generator_optimizer),
            (disc_tape, disc_loss, self.discriminator, self.discriminator_optimizer),
        ):
            grads = tape.gradient(loss, net.trainable_variables)
            optimizer.apply_gradients(zip(grads, net.trainable_variables, strict=True))
        return gen_loss, disc_loss


def main(_):
    """Train."""
    tf.keras.utils.set_random_seed(9)
    images = tf.random.stateless_normal((60 * FLAGS.batch_size, 28, 28, 1), seed=(4, 2))
    train_dataset = (
        tf.data.Dataset.from_tensor_slices(tf.tanh(images))
        .shuffle(2000, seed=4)
        .batch(FLAGS.batch_size)
    )
    trainer = Trainer()
    for epoch in range(FLAGS.epochs):
        for image_batch in train_dataset:
            tick()
            gen_loss, disc_loss = trainer.train_step(image_batch)
        print(f"epoch {epoch + 1}: generator {gen_loss:.4f} discriminator {disc_loss:.4f}")


if __name__ == "__main__":
    app.run(main)
