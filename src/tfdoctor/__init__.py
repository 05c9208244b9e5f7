"""What slows a TensorFlow training run, on which line, and what changing it saves."""

__version__ = "0.1.0"
