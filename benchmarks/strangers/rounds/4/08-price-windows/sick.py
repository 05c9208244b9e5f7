# Forecasting a daily price series with a small transformer encoder
import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(101)

WINDOW = 32
N_FEATURES = 5
BATCH_SIZE = 64
SHUFFLE_BUFFER = 1000
EPOCHS = 12
SPLIT = 6000

# --------------------------------------------------------------------------- data


def simulate_prices(n_days=7000, seed=4):
    """Geometric random walk with regimes: open, high, low, close and volume."""
    rng = np.random.default_rng(seed)
    regime = np.repeat(rng.choice([0.008, 0.02], n_days // 100), 100)
    returns = rng.normal(0.0003, 1, n_days) * regime
    returns[1:] += 0.15 * returns[:-1]
    close = 100 * np.exp(np.cumsum(returns))
    open_ = close * np.exp(rng.normal(0, 0.003, n_days))
    high = np.maximum(open_, close) * np.exp(np.abs(rng.normal(0, 0.004, n_days)))
    low = np.minimum(open_, close) * np.exp(-np.abs(rng.normal(0, 0.004, n_days)))
    volume = np.exp(rng.normal(12, 0.3, n_days) + 8 * np.abs(returns))
    return np.stack([open_, high, low, close, volume], axis=1)


def to_features(prices):
    logs = np.log(prices)
    x = np.diff(logs, axis=0)
    return ((x - x.mean(0)) / x.std(0)).astype("float32")


def windowed_dataset(series, window_size, batch_size, shuffle_buffer=None):
    """Windows of `window_size` days; the target is the close of the day after."""
    ds = tf.data.Dataset.from_tensor_slices(series)
    ds = ds.window(window_size + 1, shift=1, drop_remainder=True)
    ds = ds.flat_map(lambda w: w.batch(window_size + 1))
    if shuffle_buffer:
        ds = ds.shuffle(shuffle_buffer, seed=1)
    ds = ds.map(lambda w: (w[:-1], w[-1, 3]))
    return ds.batch(batch_size, drop_remainder=True).prefetch(1)


# -------------------------------------------------------------------------- model


def encoder(x, head_size, num_heads, ff_dim, dropout):
    y = layers.LayerNormalization(epsilon=1e-6)(x)
    y = layers.MultiHeadAttention(num_heads, head_size, dropout=dropout)(y, y)
    x = layers.Add()([x, y])
    y = layers.LayerNormalization(epsilon=1e-6)(x)
    y = layers.Dense(ff_dim, activation="relu")(y)
    y = layers.Dense(x.shape[-1])(y)
    return layers.Add()([x, y])


def build_model():
    inputs = keras.Input((WINDOW, N_FEATURES))
    x = layers.Dense(16)(inputs)
    positions = layers.Embedding(WINDOW, 16)(tf.range(WINDOW))
    x = x + positions
    x = encoder(x, head_size=8, num_heads=2, ff_dim=32, dropout=0.1)
    x = layers.GlobalAveragePooling1D()(x)
    x = layers.Dense(32, activation="relu")(x)
    outputs = layers.Dense(1)(x)
    return keras.Model(inputs, outputs)


series = to_features(simulate_prices())
train_ds = windowed_dataset(series[:SPLIT], WINDOW, BATCH_SIZE, SHUFFLE_BUFFER)
valid_ds = windowed_dataset(series[SPLIT:], WINDOW, BATCH_SIZE)

model = build_model()
model.compile(loss=keras.losses.Huber(), optimizer=keras.optimizers.Adam(1e-3), metrics=["mae"])
history = model.fit(train_ds, validation_data=valid_ds, epochs=EPOCHS, verbose=2)
print("best validation loss", min(history.history["val_loss"]))
