import numpy as np
import tensorflow as tf

STORES, T, LOOK, HORIZON = 22, 400, 28, 20
rng = np.random.default_rng(8)
t = np.arange(T)
sales = (np.sin(2 * np.pi * t / 7 + rng.uniform(0, 6, (STORES, 1))) * rng.uniform(.3, 1, (STORES, 1))
         + 0.3 * np.sin(2 * np.pi * t / 90) + rng.normal(0, .1, (STORES, T))).astype("float32")

win = np.lib.stride_tricks.sliding_window_view(sales, LOOK + 1, axis=1).reshape(-1, LOOK + 1)
X, y = win[:, :LOOK, None], win[:, LOOK]

inputs = tf.keras.Input(shape=(LOOK, 1))
z = tf.keras.layers.LSTM(32)(inputs)
outputs = tf.keras.layers.Dense(1)(z)
model = tf.keras.Model(inputs=inputs, outputs=outputs)
model.compile(optimizer=tf.keras.optimizers.Adam(0.003), loss="mse")
model.fit(X, y, batch_size=64, epochs=16, verbose=0)

window = sales[:, -LOOK:]
forecasts = []
for step in range(HORIZON):
    yhat = model.predict_on_batch(window[..., None])
    forecasts.append(yhat[:, 0])
    window = np.concatenate([window[:, 1:], yhat], axis=1)
forecasts = np.stack(forecasts, axis=1)
total = forecasts.sum(axis=0)
print("total forecast:", np.round(total, 2))
