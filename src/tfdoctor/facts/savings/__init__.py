"""What a change saves: the model of a step's stages, and the price of time."""
