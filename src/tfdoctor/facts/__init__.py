"""Facts: what was measured, each a small frozen dataclass; rules reason over these alone."""
