"""What surrounds the operations of a step: Python, launches, waits and calls."""
