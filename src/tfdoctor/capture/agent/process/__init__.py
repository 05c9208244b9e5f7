"""What the agent needs of any Python process, and sees of TensorFlow: frames, notes, hooks at imports."""
