"""Compares two runs of a program by their reports, and a run with its budgets and its baseline."""
