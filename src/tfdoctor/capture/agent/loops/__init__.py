"""Loops that train, as TensorFlow shows them while no function of Keras runs them."""
