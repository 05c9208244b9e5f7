"""The exceptions of a sampler that has nothing to sample."""


class SamplerUnavailable(Exception):  # noqa: N818  # nothing went wrong
    """The device, its driver or its library is missing; the text tells the user which."""


class NoDevice(SamplerUnavailable):
    """The machine has no such device, so a recording lacks nothing."""
