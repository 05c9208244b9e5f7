"""The whole run: its phases, the lines in them, its calls, steps, growth and end."""
