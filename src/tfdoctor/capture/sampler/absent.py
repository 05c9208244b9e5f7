"""What a sampler raises when there is nothing for it to sample."""


class Absent(Exception):  # noqa: N818  # nothing went wrong
    """The device, its driver or its library is not there; the text says which, in the user's words."""
