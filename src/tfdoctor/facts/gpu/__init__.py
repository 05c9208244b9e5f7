"""What GPUs did: their work, how busy they were, what launched it, and why they were idle."""
