"""The input pipeline: its stages, the datasets behind them, and what limits it."""
