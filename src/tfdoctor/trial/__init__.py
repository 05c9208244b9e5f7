"""What a change really saves: runs the program with the change and without it, by turns, and compares."""
