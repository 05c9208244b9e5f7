"""A trace as columns: planes hold lines, lines hold events.

Nothing is imported here: the child that asks xprof needs this package, but not NumPy, which takes longer to import
than all the rest.
"""
