"""Turns a diagnosis into a page, a comment, a JSON file or text on a screen."""
