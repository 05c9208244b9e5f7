import os, sys
import numpy as np, pandas as pd
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

n = 500_000
r = np.random.RandomState(0)
flats = pd.DataFrame(dict(
    sqm=r.uniform(20, 180, n), rooms=r.randint(1, 7, n), floor=r.randint(0, 12, n),
    lift=r.rand(n) < .4, year=r.randint(1890, 2024, n),
    district=r.choice(["nord", "sued", "ost", "west", "mitte"], n),
    listed=pd.Timestamp("2022-01-01") + pd.to_timedelta(r.randint(0, 700, n), unit="D")))

LEVEL = {"nord": 1.0, "sued": 1.2, "ost": .8, "west": 1.1, "mitte": 1.7}
age = flats.listed.dt.year - flats.year
flats["age_class"] = np.digitize(age, [5, 40, 80])
flats["effort"] = np.where(flats.lift, 0.0, (flats.floor - 1).clip(lower=0) * .5)
flats["room_size"] = flats.sqm / flats.rooms
flats["level"] = flats.district.map(LEVEL)

cols = ["sqm", "rooms", "age_class", "effort", "room_size", "level"]
price = (flats.sqm * 3000 * flats.level * (1 - .05 * flats.effort) * (1.1 - .1 * flats.age_class)
         + r.normal(0, 1e4, n))
data = ((flats[cols] - flats[cols].mean()) / flats[cols].std()).to_numpy("float32")
target = (price / price.mean()).to_numpy("float32")

ds = tf.data.Dataset.from_tensor_slices((data, target))
train = ds.skip(40_000).shuffle(50_000).batch(512).prefetch(tf.data.AUTOTUNE)
test = ds.take(40_000).batch(2048)

model = tf.keras.Sequential([tf.keras.layers.Input((len(cols),)),
                             tf.keras.layers.Dense(64, "relu"), tf.keras.layers.Dense(64, "relu"),
                             tf.keras.layers.Dense(1)])
model.compile("adam", "mae")
model.fit(train, validation_data=test, epochs=6, verbose=2)
