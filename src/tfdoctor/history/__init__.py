"""The runs of a program over its commits: levels, their changes, and whether the newest keeps to the last ones."""
