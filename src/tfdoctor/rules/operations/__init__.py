"""The operations of a step."""
