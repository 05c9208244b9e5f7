"""Which aids for debugging the script has switched on, where, and how long Python checks values for one of them."""

from __future__ import annotations

import functools

from ..process.frames import hide
from ..process.journal import guarded
from ..process.kept import time
from ..process.stack import here

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..process.declared import CallbackClass, DebugDataModule, DeterminismModule, EagerRunModule, NumericsModule
    from ..process.imports import Hooks
    from ..process.journal import Journal
    from ..process.stack import Line

NUMERICS = "tensorflow.python.debug.lib.check_numerics_callback"
FUNCTIONS = "tensorflow.python.eager.polymorphic_function.eager_function_run"
DATA = "tensorflow.python.data.ops.debug_mode"
CONFIG = "tensorflow.python.framework.config"

CHECKS, EAGERLY, DATA_MODE = "check_numerics", "functions_eagerly", "data_debug_mode"
DETERMINISM = "op_determinism"  # The aids, by what switches them on


class DebugAids:
    """The aids that are on, each with the line that switched it on."""

    def __init__(self, log: Journal) -> None:
        self.log = log
        self.lines: dict[str, Line | None] = {}
        self.checking_ns = 0
        self.timing = False  # a window is open

    @guarded("debugging")
    def switched_on(self, aid: str) -> None:
        """The script switches an aid on."""
        self.lines[aid] = here()

    @guarded("debugging")
    def switched_off(self, aid: str) -> None:
        """The script switches an aid off."""
        self.lines.pop(aid, None)

    def begin(self) -> None:
        """A window opens: what was checked before is not of interest."""
        self.checking_ns, self.timing = 0, True

    def end(self) -> None:
        """The window closes."""
        self.timing = False

    def describe(self) -> list[dict[str, object]]:
        """Return the aids that are on; `ms` is Python's time in checks of the whole window."""
        spent = {CHECKS: round(self.checking_ns / 1e6, 3)}
        return [{"aid": aid, "at": line, "ms": spent.get(aid, 0.0)} for aid, line in self.lines.items()]


def hooks(aids: DebugAids) -> Hooks:
    """Return what to patch in which module, before TensorFlow's public names are bound to it."""
    return {
        NUMERICS: [lambda module: _patch_numerics(module, aids)],
        FUNCTIONS: [lambda module: _patch_functions(module, aids)],
        DATA: [lambda module: _patch_data(module, aids)],
        CONFIG: [lambda module: _patch_determinism(module, aids)],
    }


def _patch_numerics(module: NumericsModule, aids: DebugAids) -> None:
    enable, disable = module.enable_check_numerics, module.disable_check_numerics

    @functools.wraps(enable)
    def enable_check_numerics(*args: object, **kwargs: object) -> object:
        aids.switched_on(CHECKS)
        return enable(*args, **kwargs)

    @functools.wraps(disable)
    def disable_check_numerics() -> object:
        aids.switched_off(CHECKS)
        return disable()

    module.enable_check_numerics = hide(enable_check_numerics)
    module.disable_check_numerics = hide(disable_check_numerics)
    _time_checks(module.CheckNumericsCallback, aids)


def _time_checks(kind: CallbackClass, aids: DebugAids) -> None:
    """Time the checks of single operations, each of which makes the text of its message beforehand."""
    original = kind.callback

    @functools.wraps(original)
    def callback(self: object, *args: object, **kwargs: object) -> object:
        if not aids.timing:
            return original(self, *args, **kwargs)
        began = time.perf_counter_ns()
        try:
            return original(self, *args, **kwargs)
        finally:
            aids.checking_ns += time.perf_counter_ns() - began

    kind.callback = hide(callback)


def _patch_functions(module: EagerRunModule, aids: DebugAids) -> None:
    original = module.run_functions_eagerly

    @functools.wraps(original)
    def run_functions_eagerly(run_eagerly: bool) -> object:  # noqa: FBT001  # TensorFlow's signature
        note = aids.switched_on if run_eagerly else aids.switched_off
        note(EAGERLY)
        return original(run_eagerly)

    module.run_functions_eagerly = hide(run_functions_eagerly)


def _patch_data(module: DebugDataModule, aids: DebugAids) -> None:
    original = module.enable_debug_mode

    @functools.wraps(original)
    def enable_debug_mode() -> object:
        aids.switched_on(DATA_MODE)
        return original()

    module.enable_debug_mode = hide(enable_debug_mode)


def _patch_determinism(module: DeterminismModule, aids: DebugAids) -> None:
    enable, disable = module.enable_op_determinism, module.disable_op_determinism

    @functools.wraps(enable)
    def enable_op_determinism() -> object:
        aids.switched_on(DETERMINISM)
        return enable()

    @functools.wraps(disable)
    def disable_op_determinism() -> object:
        aids.switched_off(DETERMINISM)
        return disable()

    module.enable_op_determinism = hide(enable_op_determinism)
    module.disable_op_determinism = hide(disable_op_determinism)
