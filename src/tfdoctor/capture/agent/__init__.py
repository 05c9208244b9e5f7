"""The agent: what runs inside the user's process, and must be invisible there.

Loaded by path under the private name `_tfdoctor_agent`; standard library only, and the TensorFlow
and Keras modules that the script imports by itself, once it has. Python 3.9 syntax, so that it also
runs where tfdoctor itself could not; types are imported for the type checker alone. Whatever fails in here
is recorded and never raised.
"""

from __future__ import annotations

from .process import journal
from .process.kept import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .installed import Installed
    from .process.declared import AgentPlan
    from .process.imports import Watcher
    from .run.recorder import RunRecorder

# The journal of this process, and what records it, from before TensorFlow is imported.
_begun: list[tuple[journal.Journal, RunRecorder]] = []


def begin(text: str, *, waits: bool = False, how: str = "") -> None:
    """Record this process, which tfdoctor has started; one that others have started `waits` to show what it is.

    `how` is how a worker was started.
    """
    from .run import whole

    plan: AgentPlan = json.loads(text)
    log = journal.Journal(processes=plan["processes"])
    if not (waits or how):
        log.write()
    _begun.append((log, whole.begin(plan, log, waits=waits, how=how)))


def read_changed(text: str, runner: str) -> None:
    """Make this process read the changed texts of a trial's files in their place; `runner` runs a main script."""
    from .process import changed_files

    changed_files.install(json.loads(text)["changed"], runner)


def enter(text: str, name: str) -> Watcher:
    """Install the agent, for `name` (TensorFlow or Keras) is about to be imported; return its finder."""
    from .run import whole

    plan: AgentPlan = json.loads(text)
    recorder = _known()
    log = recorder.log if recorder else journal.Journal(processes=plan["processes"])
    log.state["wanted"] = name
    try:
        if recorder is None:
            recorder = whole.begin(plan, log)
        recorder.waits = False
        return install({**plan, "out": log.out}, log, recorder).finder
    except Exception as error:
        log.fault("install", error)
        log.write()
        raise


def _known() -> RunRecorder | None:
    """Return what records this process already; None in a fork that begins anew."""
    return next((one for _, first in _begun for one in first.family if one.log.ours()), None)


def install(plan: AgentPlan, log: journal.Journal | None = None, recorder: RunRecorder | None = None) -> Installed:
    """Prepare the hooks that come into force as the script imports TensorFlow."""
    from . import installed
    from .hooks import ends
    from .process import imports

    log = log or journal.Journal(plan["out"])
    parts = installed.Installed(plan, log, recorder)
    _listen(parts)
    parts.finder = imports.watch(parts.stream.hooks(), log)
    ends.watch(parts)
    ends.watch_forks(parts)
    log.write()
    return parts


def _listen(parts: Installed) -> None:
    """Have all listeners hear of the stream of events, the outermost first."""
    from .hooks import keras_steps, session_steps, tensorflow_steps, users_profiler
    from .program import registry, training_state
    from .run.phases import Phases

    stream, timing, lending = parts.stream, parts.timing, users_profiler.Lending(parts.window, parts.watch)
    if timing is None:
        Phases(parts.recorder.clock).listen(stream)
        tensorflow_steps.account(stream, parts)
    else:
        stream.on("function", lambda _: training_state.seed())  # once, as TensorFlow brings them
    keras_steps.listen(stream, parts)
    tensorflow_steps.count(stream, parts)
    session_steps.listen(stream, parts, lending)
    users_profiler.listen(stream, lending)
    if timing is not None:  # beneath what times the steps
        timing.settings.listen(stream)
        if timing.without is not None:
            timing.without.listen(stream)
    registry.listen(stream, parts.registry)
