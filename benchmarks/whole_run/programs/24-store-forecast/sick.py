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
model.fit(X, y, batch_size=64, epochs=4, verbose=0)

forecasts = {}
for s in range(STORES):
    history = list(sales[s])
    for step in range(HORIZON):
        x_input = np.array(history[-LOOK:]).reshape((1, LOOK, 1))
        yhat = model.predict(x_input, verbose=0)
        history.append(yhat[0][0])
    forecasts[s] = history[-HORIZON:]
total = np.sum([forecasts[s] for s in forecasts], axis=0)
print("total forecast:", np.round(total, 2))
