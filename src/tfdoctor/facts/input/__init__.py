"""The input pipeline: its stages, the datasets behind them, and what limits it.

How long a step waits for it is measured in ``facts/step_time``.
"""
