"""The machine of the run: cores, threads, memory, clocks, and what competes for them."""
