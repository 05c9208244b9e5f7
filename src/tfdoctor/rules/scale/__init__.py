"""The devices, processes and memory that a run has, and what they cost."""
