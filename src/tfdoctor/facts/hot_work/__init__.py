"""What a step does longer than it must: work by the lines that make it, and what to ask of it."""
