"""Damaged recordings by the thousand: none may end in a traceback."""
