"""Matmuls and convolutions: whether the matrix unit runs them, their layers, and which of them belong together."""
