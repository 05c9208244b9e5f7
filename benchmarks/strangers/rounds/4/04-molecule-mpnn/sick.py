"""Message passing network (Gilmer et al.) on small molecules, regression of one property.

Molecules of a batch are merged into one disconnected graph.
"""
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(42)

ATOM_DIM = 16
BOND_DIM = 6
HIDDEN = 24
STEPS = 4
BATCH_SIZE = 32
ATOMS = 18
BONDS = 20
N_MOLECULES = 5120
N_EPOCHS = 5


def random_molecules(n):
    rng = np.random.default_rng(3)
    atoms = rng.normal(size=(n, ATOMS, ATOM_DIM)).astype("float32")
    pairs = np.zeros((n, 2 * BONDS, 2), "int64")
    for m in range(n):
        chain = np.stack([np.arange(ATOMS - 1), np.arange(1, ATOMS)], 1)
        rings = rng.integers(0, ATOMS, (BONDS - len(chain), 2))
        bonds = np.concatenate([chain, rings])
        pairs[m] = np.concatenate([bonds, bonds[:, ::-1]])
    kinds = rng.integers(0, BOND_DIM, (n, 2 * BONDS))
    features = np.eye(BOND_DIM, dtype="float32")[kinds]
    target = np.tanh(atoms[..., 0].sum(1) * 0.3 + 0.1 * (kinds == 2).sum(1) - 0.6)
    return atoms, features, pairs, target.astype("float32")


def merge_batch(x, y):
    atoms, bonds, pairs = x
    shift = tf.range(BATCH_SIZE, dtype=tf.int64) * ATOMS
    pairs = pairs + shift[:, None, None]
    molecule = tf.repeat(tf.range(BATCH_SIZE), ATOMS)
    atoms = tf.reshape(atoms, (BATCH_SIZE * ATOMS, ATOM_DIM))
    bonds = tf.reshape(bonds, (BATCH_SIZE * 2 * BONDS, BOND_DIM))
    pairs = tf.reshape(pairs, (BATCH_SIZE * 2 * BONDS, 2))
    return (atoms, bonds, pairs, molecule), y


class EdgeNetwork(layers.Layer):
    """Maps bond features to one (HIDDEN x HIDDEN) matrix per bond."""

    def __init__(self, units):
        super().__init__()
        self.units = units
        self.hidden = layers.Dense(64, activation="relu")
        self.project = layers.Dense(units * units)

    def call(self, bonds):
        matrices = self.project(self.hidden(bonds))
        return tf.reshape(matrices, (-1, self.units, self.units))


class MessagePassing(layers.Layer):
    def __init__(self, units, steps):
        super().__init__()
        self.steps = steps
        self.edge_network = EdgeNetwork(units)
        self.embed = layers.Dense(units)
        self.update = layers.GRUCell(units)

    def call(self, inputs):
        atoms, bonds, pairs = inputs
        h = self.embed(atoms)
        for _ in range(self.steps):
            matrices = self.edge_network(bonds)
            neighbours = tf.gather(h, pairs[:, 1])
            messages = tf.squeeze(tf.matmul(matrices, neighbours[..., None]), -1)
            summed = tf.math.unsorted_segment_sum(messages, pairs[:, 0], tf.shape(atoms)[0])
            h, _ = self.update(summed, [h])
        return h


class PropertyModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.mpnn = MessagePassing(HIDDEN, STEPS)
        self.gate = layers.Dense(64, activation="sigmoid")
        self.value = layers.Dense(64)
        self.readout = keras.Sequential([layers.Dense(64, activation="relu"), layers.Dense(1)])

    def call(self, inputs):
        atoms, bonds, pairs, molecule = inputs
        h = self.mpnn((atoms, bonds, pairs))
        both = tf.concat([h, atoms], axis=-1)
        pooled = tf.math.segment_sum(self.gate(both) * self.value(both), molecule)
        return tf.squeeze(self.readout(pooled), -1)


model = PropertyModel()
optimizer = keras.optimizers.Adam(1e-3)
loss_fn = keras.losses.MeanSquaredError()
train_mae = keras.metrics.MeanAbsoluteError()


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        prediction = model(x)
        loss = loss_fn(y, prediction)
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
    train_mae.update_state(y, prediction)
    return loss


def main():
    *x, y = random_molecules(N_MOLECULES)
    dataset = (
        tf.data.Dataset.from_tensor_slices((tuple(x), y))
        .shuffle(N_MOLECULES, seed=5)
        .batch(BATCH_SIZE, drop_remainder=True)
        .map(merge_batch, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(2)
    )
    for epoch in range(N_EPOCHS):
        train_mae.reset_state()
        for batch, target in dataset:
            loss = train_step(batch, target)
        print(f"epoch {epoch}: loss {float(loss):.4f}, mae {float(train_mae.result()):.4f}")


if __name__ == "__main__":
    main()
