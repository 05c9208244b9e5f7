"""The programs that XLA compiled for the run, and which of them train."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from tfdoctor.trace import Trace
from tfdoctor.trace.hlo import PROGRAM, HloProgram, Instruction, programs

# Parts of framework names that only a backward pass has: JAX's transpose(jvp(...)), TensorFlow's gradient_tape/ and
# gradients/, PyTorch's aten__convolution_backward.
BACKWARD_PASS = re.compile(r"transpose\(jvp|gradient_tape/|(?:^|/)gradients\w*/|backward", re.IGNORECASE)

# Parts of the names of an optimizer's operations: Keras' and optax's scopes, TensorFlow's types.
OPTIMIZER = re.compile(
    r"(?:^|[/(_])(?:adam\w*|sgd|momentum|rmsprop|adagrad|adadelta|lion|lamb|lars|optax|apply_updates|"
    r"apply_gradients|optimizer)(?:$|[/)_])|Apply|AssignSub"
)

CONTAINERS = ("while", "conditional", "call", "async-call")  # XLA's categories of operations that hold others
# Parts of the usual names of a function that trains.
TRAINING = re.compile(r"train|update|apply|fit(?:$|_)|optim", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class XlaPrograms:
    """XLA's programs, by the name of their module with and without fingerprint; empty when there are none.

    ``multiplying`` has the dots and convolutions of each instruction that holds any, by the program's
    fingerprint and the instruction's name.
    """

    programs: Mapping[str, HloProgram]
    multiplying: Mapping[tuple[str, str], tuple[Instruction, ...]] = field(default_factory=dict)

    @classmethod
    def measure(cls, trace: Trace) -> Self:
        """Read the programs that the profiler kept."""
        by_module = programs(trace)
        multiplying = {
            (fingerprint[1], instruction.name): matmuls
            for name, program in by_module.items()
            if (fingerprint := PROGRAM.search(name))
            for instruction in program.instructions()
            if (matmuls := tuple(inner for inner in program.inside(instruction) if inner.matmul))
        }
        return cls(by_module, multiplying)

    def matmuls(self, fingerprint: str, instruction: str) -> tuple[Instruction, ...]:
        """Return the dots and convolutions in an instruction, by its program's fingerprint and its name."""
        return self.multiplying.get((fingerprint, instruction), ())

    def is_depthwise(self, fingerprint: str, instruction: str) -> bool:
        """Say whether an instruction, or what it fuses, convolves each channel alone."""
        sizes = [inner.matmul for inner in self.matmuls(fingerprint, instruction) if inner.matmul]
        return bool(sizes) and all(matmul.depthwise for matmul in sizes)

    def named(self, module: str) -> HloProgram | None:
        """Return a module's program, by "jit_f(123)" or, where that is not known, by "jit_f"."""
        return self.programs.get(module) or self.programs.get(PROGRAM.sub("", module))

    @property
    def by_keras(self) -> bool:
        """Whether Keras' own functions on JAX are among those that were compiled."""
        return any("keras/src/backend/jax" in file for program in self.programs.values() for file in program.files)


def takes_gradients(names: list[str]) -> bool:
    """Say whether operations of these names hold a backward pass."""
    return any(BACKWARD_PASS.search(name) for name in names)


def changes_weights(module: str, names: list[str], *, donates: bool) -> bool:
    """Say whether a program that takes gradients applies them too, as a whole training step does.

    Such a program overwrites its inputs, has an optimizer's operations, or is named after training.
    """
    return donates or bool(TRAINING.search(module)) or any(OPTIMIZER.search(name) for name in names)


def entry(program: HloProgram) -> Mapping[str, Instruction]:
    """Return a program's instructions by name; names are unique in a program."""
    return {instruction.name: instruction for instruction in program.instructions()}
