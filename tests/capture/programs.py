"""The programs that test_recorded_programs records, and how."""

from tests.capture.running import *
from tests.capture.timed_programs import BEGIN, END, TEXT, TIMED
from tfdoctor.terms.kinds import Part

SHARED, MAPPED, CALLS, GRADIENTS = (TEXT[name] for name in ("shared", "mapped", "calls", "gradients"))
EAGER = "from tensorflow import compat\ncompat.v1.reset_default_graph()\ncompat.v1.enable_eager_execution()\n"
LOOPS = {
    "function": TEXT["loop of a function"],
    "train_on_batch": f"import keras\n{TEXT['keras']}",
    "tf_keras": f"import tf_keras as keras\n{TEXT['keras']}",
    "session": TEXT["loop of a session"],
}

PLANS = {  # by the part: names, or what the line ends with
    Part.METRICS: ["metrics"],
    Part.SUMMARIES: ["tf.summary"],
    Part.CALLBACK: ["Counting", "ModelCheckpoint"],
    **{part: [f"# {part} here"] for part in (Part.EVALUATION, Part.PREDICTION, Part.SAVING, Part.INPUT)},
}


def plan(part: str, name: str, script: Path) -> Mapping[str, object]:
    at = line_of(script, name) if name.startswith("#") else None
    return {"part": part, "name": "" if at else name, "at": at, "length": 20}


SCRIPTS = Path(__file__).parents[1] / "e2e" / "scripts"
TRAINING, STYLES, BLOCKS = SCRIPTS / "training.py", SCRIPTS / "loops.py", SCRIPTS / "blocks.py"
TWENTY, FEW = {"steps": 20}, {"warmup": 8, "steps": 5}

PROGRAMS: dict[str, tuple[Any, Any]] = {
    "devices": (TEXT["devices"], None),  # first: it divides the CPU
    "plain reviews": (TEXT["reviews"] + "del data\n", None),  # while no hook is installed
    "plain blocks": (["blocks.py", "plain"], None),
    "blocks": (["blocks.py", "record"], None),
    "collected": ("import gc\ngc.collect()\n", None),  # else what is left of blocks is described with others
    "plain": ([STYLES, "session"], None),
    "sessions": ([STYLES, "session"], TWENTY),
    "session": (TEXT["texts"] + LOOPS["session"], FEW),
    "timed session": (BEGIN + TIMED["session"] + END.format("session"), {"trace": False}),
    "eager": (EAGER, None),
    "mirrored": ([TRAINING, "mirrored"], TWENTY),
    "on_batch": ([TRAINING, "on_batch"], TWENTY),
    "execution": ([TRAINING, "execution"], {"steps": 6}),
    # Without a crash of TensorFlow's profiler beside collectives: activities have no number while a trace is open.
    "unnumbered": (TEXT["unnumbered"], None),
    "pipelines": ([TRAINING, "pipelines"], TWENTY),
    "custom": ([TRAINING, "custom"], {"warmup": 4, "steps": 25}),
    **{name: ([STYLES, name], TWENTY) for name in ("repeated", "gradient_tape", "gan", "in_graph")},
    "keras_2": ([STYLES, "keras_2", "4"], TWENTY),
    "without": (TEXT["again"], {"steps": 5, "trace": False}),
    "with": (TEXT["again"], {"steps": 5}),
    "calls": (CALLS, TWENTY),
    "datasets": (TEXT["datasets"], {"warmup": 2, "steps": 3}),
    "gradients": (GRADIENTS, {"warmup": 30, "steps": 5}),
    **{name: (TEXT["texts"] + loop, FEW) for name, loop in LOOPS.items() if name != "session"},
    "scaled": (TEXT["scaled"], FEW),
    # The step has eight times the pipeline's work: of two loops that take as long, each hides what the end of the
    # other saves, and which one the step waits for differs from run to run.
    "histograms": (TEXT["histograms"], {"warmup": 3, "steps": 20, "sample_every_ms": 500}),
    "warm_up_only": ([TRAINING, "warm_up_only"], TWENTY),
    "own_profiler": ([TRAINING, "own_profiler_first", "theirs"], TWENTY),
    "fit": ([TRAINING, "fit"], None),
    "broken_agent": ([TRAINING, "broken_agent"], TWENTY),
    "mapped": (MAPPED, {"warmup": 2, "steps": 3}),
    "deterministic": (TEXT["deterministic"], {"warmup": 2, "steps": 3}),
    "files": (TEXT["files"], {"warmup": 3, "steps": 20, "sample_every_ms": 50}),
    **{
        f"timed {name}": (BEGIN + text + END.format(name), {"trace": False})
        for name, text in TIMED.items()
        if name != "session"
    },
    "reviews": (TEXT["reviews"], {"warmup": 6, "steps": 5}),
    "taken out": (TEXT["taken out"], None),  # last: it changes what these do for good
}


def written(folder: Path, programs: dict[str, tuple[Any, Any]]) -> Programs:
    """Write the scripts of programs that are texts; return all with their words."""
    texts = {name: text for name, (text, _) in programs.items() if isinstance(text, str)}
    for name, text in texts.items():
        (folder / f"train_{name}.py").write_text(text)
    return {
        name: ([f"train_{name}.py"] if name in texts else words, plan) for name, (words, plan) in programs.items()
    }
