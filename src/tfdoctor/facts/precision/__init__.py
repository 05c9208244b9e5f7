"""What 16-bit precision makes of operations other than matmuls: casts, and what a CPU computes value by value."""
