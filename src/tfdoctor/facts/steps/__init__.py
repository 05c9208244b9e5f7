"""Where the training steps begin and end, in every style of loop."""
