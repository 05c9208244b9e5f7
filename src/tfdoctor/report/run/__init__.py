"""The account of the run in words, as a bar, as a table and as JSON: one module for each.

Every renderer uses these; they know nothing of the report of the step.
"""
