"""The settings of a GPU board that last for a run, and the state of its PCIe link, as NVML tells them.

Field by field from NVIDIA's reference (https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html):

| our name | call | meaning |
|---|---|---|
| persistence | nvmlDeviceGetPersistenceMode | whether the driver stays loaded without clients; Linux only |
| power_limit_w | nvmlDeviceGetEnforcedPowerLimit | the limit in force, after all limiters; mW |
| power_default_w | nvmlDeviceGetPowerManagementDefaultLimit | the limit after a restart; mW |
| power_max_w | nvmlDeviceGetPowerManagementLimitConstraints | the highest limit that may be set; mW |
| slowdown_c | nvmlDeviceGetTemperatureThreshold, 1 | from which the hardware lowers clocks; not on Ada and later |
| ecc | nvmlDeviceGetEccMode | whether memory errors are corrected |
| ecc_uncorrected | nvmlDeviceGetTotalEccErrors, 1, 0 | errors not corrected since the driver was loaded |
| pcie_max_gen | nvmlDeviceGetMaxPcieLinkGeneration | the highest that board and slot both have |
| pcie_max_width | nvmlDeviceGetMaxPcieLinkWidth | the widest that board and slot both have, in lanes |
| mig | nvmlDeviceGetMigMode | whether the board is divided into instances |
| pcie_gen, pcie_width | nvmlDeviceGetCurrPcieLinkGeneration, ...Width | in use; lower while idle |
"""

from collections.abc import Callable, Mapping
from typing import Any

from tfdoctor.capture.sampler.probe import Probe

# NVML's numbers: a temperature threshold, a kind of memory error, and a counter that starts with the driver.
SLOWDOWN, UNCORRECTED, VOLATILE = 1, 1, 0
# Positions in answers: a mode is the current and the pending one, a range the lowest and the highest limit.
CURRENT, HIGHEST = 0, 1

W_PER_MW = 1e-3


class BoardSettings:
    """Reads the settings of one board, and its PCIe link; what it does not tell is left out."""

    def __init__(self, nvml: Any, handle: Any) -> None:  # noqa: ANN401  # pynvml has no types
        def probe(name: str, *arguments: int) -> Probe:
            return Probe(lambda: getattr(nvml, name)(handle, *arguments))

        self.flags: dict[str, Callable[[], Any]] = {
            "persistence": probe("nvmlDeviceGetPersistenceMode"),
            "ecc": _at(probe("nvmlDeviceGetEccMode"), CURRENT),
            "mig": _at(probe("nvmlDeviceGetMigMode"), CURRENT),
        }
        self.powers: dict[str, Callable[[], Any]] = {
            "power_limit_w": probe("nvmlDeviceGetEnforcedPowerLimit"),
            "power_default_w": probe("nvmlDeviceGetPowerManagementDefaultLimit"),
            "power_max_w": _at(probe("nvmlDeviceGetPowerManagementLimitConstraints"), HIGHEST),
        }
        self.numbers = {
            "slowdown_c": probe("nvmlDeviceGetTemperatureThreshold", SLOWDOWN),
            "ecc_uncorrected": probe("nvmlDeviceGetTotalEccErrors", UNCORRECTED, VOLATILE),
            "pcie_max_gen": probe("nvmlDeviceGetMaxPcieLinkGeneration"),
            "pcie_max_width": probe("nvmlDeviceGetMaxPcieLinkWidth"),
        }
        self.links = {
            "pcie_gen": probe("nvmlDeviceGetCurrPcieLinkGeneration"),
            "pcie_width": probe("nvmlDeviceGetCurrPcieLinkWidth"),
        }

    def settings(self) -> dict[str, bool | float | int]:
        """Return what lasts for the run."""
        flags = {name: bool(state) for name, state in _known(self.flags).items()}
        powers = {name: limit * W_PER_MW for name, limit in _known(self.powers).items()}
        return {**flags, **powers, **_known(self.numbers)}

    def link(self) -> dict[str, int]:
        """Return the PCIe link in use."""
        return _known(self.links)


def _at(probe: Probe, position: int) -> Callable[[], Any]:
    """Return a call for one of several answers."""

    def answer() -> Any:  # noqa: ANN401  # its type depends on the call
        answers = probe()
        return None if answers is None else answers[position]

    return answer


def _known(calls: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    answers = {name: call() for name, call in calls.items()}
    return {name: answer for name, answer in answers.items() if answer is not None}
