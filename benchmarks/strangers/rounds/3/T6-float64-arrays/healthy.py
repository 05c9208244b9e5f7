# Hourly energy demand from weather and calendar features
import numpy as np
from tensorflow import keras
from tensorflow.keras.layers import BatchNormalization, Dense, Dropout

np.random.seed(0)
hours = np.arange(12800)
weather = np.random.normal(size=(12800, 30))
calendar = np.column_stack([np.sin(2 * np.pi * hours / 24), np.cos(2 * np.pi * hours / 24), hours % 7])
X = np.hstack([weather, calendar])
y = 50 + 10 * calendar[:, 0] + weather[:, 0] + np.random.normal(size=12800)

model = keras.Sequential()
model.add(keras.Input((X.shape[1],)))
model.add(Dense(512, activation="relu"))
model.add(BatchNormalization())
model.add(Dense(512, activation="relu"))
model.add(Dropout(0.2))
model.add(Dense(256, activation="relu"))
model.add(Dense(1))
model.compile(optimizer=keras.optimizers.SGD(1e-3), loss="mae")
history = model.fit(X, y, epochs=1, batch_size=64, verbose=2)
