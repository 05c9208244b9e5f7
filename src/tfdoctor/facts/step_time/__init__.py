"""What the time of a step goes to."""
