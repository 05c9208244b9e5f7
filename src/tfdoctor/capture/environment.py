"""The environment of a run: the user's, and the way in for the agent."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfdoctor.capture.plan import Kind, Plan

SITE = str(Path(__file__).parent / "site")

PLAN = "TFDOCTOR_PLAN"


def environment(plan: Plan, processes: Path) -> dict[str, str]:
    """Return the environment to start the run with; each agent makes its folder below `processes`.

    Launchers pass their environment on by hand (`env=dict(os.environ, …)`), so a command sees ours;
    a script and a module do not.
    """
    before = os.environ.get("PYTHONPATH")
    others = [entry for entry in before.split(os.pathsep) if entry != SITE] if before else []
    empty = before in ("", os.pathsep.join([SITE, SITE]))
    paths = [SITE, *others, *([SITE] if empty else [])]  # twice: there was one, and it was empty
    manners = "visible" if plan.kind is Kind.COMMAND else "hidden"
    text = json.dumps(agents_plan(plan, processes))
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        PLAN: f"{os.getpid()} {manners} {text}",
    }


def agents_plan(plan: Plan, processes: Path) -> Mapping[str, Any]:
    """Return what the agent needs to know."""
    return {
        "processes": str(processes),
        "steps": plan.steps,
        "warmup": plan.warmup,
        "seconds": plan.seconds,
        "stop_after": plan.stop_after,
        "watch_s": plan.watch_s,
    }
