"""``python xprof_child.py TRACE``: prints as JSON what xprof makes of a trace; exit 1 and a message if nothing.

Run by path in a process of its own. The input pipeline analyzer leaves an OpStats message in its cache,
which has the steps in exact picoseconds; its tables are rounded, but hold the verdict and the
diagnostics. The log level has to be set before xprof is imported.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from xprof.convert import _pywrap_profiler_plugin as xprof  # noqa: E402
from xprof.protobuf import op_stats_pb2, steps_db_pb2  # noqa: E402

TOOL = "input_pipeline_analyzer"
CACHE = "ALL_HOSTS.op_stats_v2.pb"

GENERIC_CORE = 1
"""The key under which steps of CPU and GPU traces are kept; a TPU has one entry per core."""


def main() -> None:
    """Ask once."""
    trace = sys.argv[1]
    data, answered = xprof.xspace_to_tools_data([trace], TOOL, {})
    if not answered:
        sys.exit(data.decode(errors="replace") or "xprof gave no reason")
    stats = op_stats_pb2.OpStats.FromString(Path(trace).with_name(CACHE).read_bytes())
    answer = {
        "tables": json.loads(data),
        "steps": [_step(step) for step in stats.step_db.step_sequence],
    }
    json.dump(answer, sys.stdout)


def _step(step: Any) -> dict[str, Any]:  # noqa: ANN401 - a protobuf without type stubs
    info = step.step_info_per_core[GENERIC_CORE]
    parts = steps_db_pb2.GenericStepBreakdown()
    info.step_breakdown.Unpack(parts)
    return {
        "name": info.step_name,
        "duration_ps": info.duration_ps,
        "parts_ps": dict(parts.type_ps),
    }


if __name__ == "__main__":
    main()
