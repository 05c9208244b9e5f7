"""Profiler traces of runs that never happened, every number known beforehand.

For accelerators that are not at hand. What is invented: durations, registers, grids. What is not:
the names of planes, lines, events and stats, their types and units, and how they hang together, as
TensorFlow 2.21 and libtpu write them.
"""
