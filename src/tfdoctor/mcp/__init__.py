"""Recordings for assistants: a server of the Model Context Protocol on the standard input and output."""
