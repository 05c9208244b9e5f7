"""Facts: what was measured, each a small frozen record; rules use nothing else."""
