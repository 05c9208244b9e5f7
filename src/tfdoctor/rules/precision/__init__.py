"""Precision, and the matrix unit."""
