"""Matrix factorization of film ratings."""
import keras
import numpy as np
from keras import layers, ops

NUM_USERS, NUM_MOVIES, DIM = 40000, 12000, 32
rng = np.random.default_rng(5)
users = rng.integers(0, NUM_USERS, 51200)
movies = rng.integers(0, NUM_MOVIES, 51200)
ratings = rng.uniform(0, 1, 51200).astype("float32")


class RecommenderNet(keras.Model):
    def __init__(self, num_users, num_movies, dim):
        super().__init__()
        self.user = layers.Embedding(num_users, dim, activity_regularizer=keras.regularizers.l2(1e-6))
        self.movie = layers.Embedding(num_movies, dim, activity_regularizer=keras.regularizers.l2(1e-6))
        self.user_bias = layers.Embedding(num_users, 1)
        self.movie_bias = layers.Embedding(num_movies, 1)

    def call(self, inputs):
        user, movie = inputs[:, 0], inputs[:, 1]
        dot = ops.sum(self.user(user) * self.movie(movie), axis=-1, keepdims=True)
        return ops.sigmoid(dot + self.user_bias(user) + self.movie_bias(movie))


model = RecommenderNet(NUM_USERS, NUM_MOVIES, DIM)
model.compile(loss="mse", optimizer=keras.optimizers.SGD(0.05))
model.fit(np.stack([users, movies], axis=1), ratings, batch_size=256, epochs=1, verbose=2)
