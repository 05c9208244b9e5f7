"""Facts: what was measured, each a small frozen dataclass; rules use nothing else."""
