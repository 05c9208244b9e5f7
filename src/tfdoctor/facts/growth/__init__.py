"""What grows over the run: counts that tell why, memory until it is full, and lines that take longer."""
