"""Which framework the run used, how that is known, and how to record such a run."""

from tfdoctor.facts.kit import *
from tfdoctor.facts.run.xla_programs import XlaPrograms
from tfdoctor.trace.names import ITERATOR

TENSORFLOW, JAX, PYTORCH = "TensorFlow", "JAX", "PyTorch/XLA"

# Events of the host that only one framework emits: JAX's compiled calls (0.4 to 0.10), PyTorch/XLA's runtime (2.x),
# TensorFlow's executors and pipelines (2.3 to 2.21).
SIGNS = (
    (JAX, re.compile(r"PjitFunction\(.*\)")),
    (PYTORCH, re.compile(r"(?:XLAGraphExecutor|PjRtComputationClient|torch_xla|XLATensor)\b.*")),
    (TENSORFLOW, re.compile(r"(?:EagerExecute|FunctionRun|SessionRun|ExecutorState::Process|Iterator::.*)")),
)

# How to record a run of another framework: `tfdoctor profile` hooks only TensorFlow.
RECORD = {
    JAX: (
        "record 20 steps or more inside `with jax.profiler.trace(folder):`, each inside "
        "`with jax.profiler.StepTraceAnnotation('train', step_num=n):`"
    ),
    PYTORCH: (
        "record 20 steps or more with `xp.trace` of torch_xla.debug.profiler (or its server), each inside "
        "`with xp.StepTrace('train', step_num=n):`"
    ),
}


class Framework(Record):
    """The framework that ran the training; an empty name when it is unknown."""

    name: str = ""
    version: str = ""
    evidence: str = ""  # "the trace contains calls of PjitFunction(train_step)"
    keras: bool = False  # Keras on JAX, by the trace; tf.keras is known from the program record
    tf_data: bool = False  # tf.data iterators ran

    @classmethod
    def measure(cls, trace: Trace, recording: Recording, xla_programs: XlaPrograms) -> Self:
        """Read what the profiler wrote of itself, else the events that only one framework emits."""
        names = [kind.name for kind in (trace.host.types if trace.host else ())]
        other = recording.run.other_framework if recording.run else None
        by_keras = xla_programs.by_keras or bool(other and other.keras)
        of_planes = filter(None, (str(plane.stats.get("jax_version") or "") for plane in trace.planes))
        known = [(JAX, version, f"the profiler recorded JAX {version}") for version in of_planes]
        named = ((framework, next(filter(sign.fullmatch, names), "")) for framework, sign in SIGNS)
        known += [(framework, "", f"the trace contains the event {name}") for framework, name in named if name]
        if other is not None and other.name == "jax":
            known.append((JAX, other.version, "the script imported JAX"))
        versions = recording.manifest.versions if recording.manifest else {}
        if "tensorflow" in versions:
            known.append((TENSORFLOW, versions["tensorflow"], "it was recorded by tfdoctor"))
        name, version, evidence = next(iter(known), ("", "", ""))
        tf_data = any(name.startswith(ITERATOR) for name in names)
        return cls(name, version, evidence, keras=name == JAX and by_keras, tf_data=tf_data)

    @property
    def foreign(self) -> bool:
        """Whether it is known not to be TensorFlow."""
        return self.name in RECORD

    @property
    def title(self) -> str:
        """The framework in words: "Keras on JAX 0.10.2"."""
        name = f"Keras on {self.name}" if self.keras and self.name == JAX else self.name
        return f"{name} {self.version}".rstrip()

    @property
    def how_to_record(self) -> str:
        """How to record the run with its steps, shapes and machine."""
        return RECORD.get(self.name, "record the run with `tfdoctor profile`")

    @property
    def with_tfdoctor(self) -> str:
        """The end of a reason when only tfdoctor records what is missing; "" for other frameworks."""
        return "" if self.foreign else "; record with `tfdoctor profile`"

    @property
    def no_pipeline(self) -> str:
        """Why there is no tf.data pipeline; "" where there should be one."""
        if not self.foreign or self.tf_data:
            return ""
        return (
            f"this is a run of {self.title} ({self.evidence}) and its trace shows no tf.data pipeline, so "
            "the input cannot be checked"
        )
