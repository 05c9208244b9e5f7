"""Runs of a compiled program on a GPU, found by the kernel that each run launches once.

A GPU's plane does not mark the runs of a program: its kernels only name the program (stat ``hlo_module``), and
carry no run id where XLA runs them as a CUDA graph (``hlo_op`` is then ``command_buffer``; seen with JAX
0.11). The host's calls tell how many runs there are.
"""

from collections import Counter
from itertools import pairwise

from tfdoctor.facts.run.device import Device, work_lines
from tfdoctor.facts.steps.step import Step, chain

Kernel = tuple[int, int, str]
"""Start and end in ps, and the kernel's name with its operation's."""


def kernel_runs(device: Device, module: str, calls: int) -> list[Step]:
    """Return the runs of a program on the busiest GPU, or none where no kernel ran exactly once in each.

    ``calls`` is the number of calls on the host. A run lasts from its first kernel to its last, and the step to the
    next run's first.
    """
    kernels = _kernels(device, module)
    counts = Counter(name for _, _, name in kernels)
    first = next((name for _, _, name in kernels if counts[name] == calls), "")
    if calls < 2 or not first:  # noqa: PLR2004 - no period in a single run
        return []
    places = [place for place, kernel in enumerate(kernels) if kernel[2] == first]
    steps = []
    for number, (place, following) in enumerate(pairwise([*places, len(kernels)])):
        end_ps = max(end for _, end, _ in kernels[place:following])
        steps.append(Step(number, kernels[place][0], end_ps, end_ps))
    return chain(steps)


def _kernels(device: Device, module: str) -> list[Kernel]:
    """Return the program's kernels in the order of their starts."""
    lines = work_lines(device.busiest) if device.busiest else ()
    return sorted(
        (event.start_ps, event.end_ps, f"{event.name} {event.stats.get('hlo_op')!s}")
        for line in lines
        for index, of_event in zip(*line.stats.values("hlo_module"), strict=True)
        if of_event == module
        for event in (line.event(int(index)),)
    )
