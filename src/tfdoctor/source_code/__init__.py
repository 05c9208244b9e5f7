"""One model of a file of the user's: its syntax, what its names hold, what runs how often, and replaced parts."""
