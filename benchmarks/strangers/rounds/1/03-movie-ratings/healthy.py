"""Matrix factorization on MovieLens-style ratings."""
import keras
import numpy as np
from keras import layers

rng = np.random.default_rng(42)
N_RATINGS = 40000
N_USERS = 600
EMBED = 24

# the columns of ratings.csv
catalogue = np.sort(rng.choice(60000, 9000, replace=False)) + 1
user_id = rng.integers(1, N_USERS + 1, N_RATINGS)
movie_id = catalogue[rng.zipf(1.3, N_RATINGS) % len(catalogue)]
rating = rng.integers(1, 11, N_RATINGS) / 2.0
rating = (rating / 5.0).astype("float32")
catalogue, movie_id = np.unique(movie_id, return_inverse=True)

n_users = int(user_id.max()) + 1
n_movies = int(movie_id.max()) + 1
print("users", n_users, "movies", n_movies)


class MatrixFactorization(keras.Model):
    def __init__(self):
        super().__init__()
        self.user = layers.Embedding(n_users, EMBED, embeddings_initializer="he_normal")
        self.user_bias = layers.Embedding(n_users, 1)
        self.movie = layers.Embedding(n_movies, EMBED, embeddings_initializer="he_normal")
        self.movie_bias = layers.Embedding(n_movies, 1)
        self.dot = layers.Dot(axes=1)

    def call(self, inputs):
        u, m = inputs
        score = self.dot([self.user(u), self.movie(m)])
        return keras.ops.sigmoid(score + self.user_bias(u) + self.movie_bias(m))


model = MatrixFactorization()
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse")
order = rng.permutation(N_RATINGS)
user_id, movie_id, rating = user_id[order], movie_id[order], rating[order]
model.fit((user_id, movie_id), rating, batch_size=256, epochs=1, verbose=2)
