"""The operations of a step: their time, shapes, arithmetic, precision and kernels."""
