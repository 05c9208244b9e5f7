"""The traced window: which steps, when the profiler starts and stops, and what is read meanwhile."""
