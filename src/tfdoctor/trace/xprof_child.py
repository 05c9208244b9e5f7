"""``python xprof_child.py TRACE FOLDER BYTES``: prints xprof's analysis of a trace as JSON.

Exits with 1 and a message if there is none. Run by path in its own process, limited to BYTES of address space; it
writes to the empty FOLDER only.
The input pipeline analyzer writes an OpStats message into its cache, with the steps in exact picoseconds; its
tables are rounded, but have the verdict. The log level must be set before the import.
"""

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

from xprof.convert import _pywrap_profiler_plugin as xprof
from xprof.protobuf import op_stats_pb2, steps_db_pb2

from tfdoctor.terms import limits
from tfdoctor.terms.errors import InputError
from tfdoctor.trace import repair
from tfdoctor.trace.wire import parse

TOOL = "input_pipeline_analyzer"
CACHE = "ALL_HOSTS.op_stats_v2.pb"


def main() -> None:
    """Print the analysis of the trace, or exit with an error."""
    trace, private, limit = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    limits.lift()  # of the command that asks: xprof has one of its own
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        space = parse(trace)
    except InputError as error:
        sys.exit(str(error))
    repair.repair(space)
    whole = private / "whole.xplane.pb"
    whole.write_bytes(space.SerializeToString())
    del space  # xprof needs the memory
    data, answered = xprof.xspace_to_tools_data([str(whole)], TOOL, {})
    if not answered:
        sys.exit(data.decode(errors="replace") or "xprof gave no reason")
    stats = op_stats_pb2.OpStats.FromString(whole.with_name(CACHE).read_bytes())
    steps = [_step(step) for step in stats.step_db.step_sequence if step.step_info_per_core]
    sys.stdout.write(json.dumps({"tables": json.loads(data), "steps": steps}))
    sys.stdout.flush()  # xprof may abort at its end


def _step(step: Any) -> dict[str, Any]:  # noqa: ANN401 - a protobuf without type stubs
    """Return a step as of its slowest core; CPU and GPU traces have one core, TPU traces several.

    Only CPU and GPU traces have times by event type.
    """
    cores = step.step_info_per_core
    info = max(cores.values(), key=lambda core: core.duration_ps)
    parts = steps_db_pb2.GenericStepBreakdown()
    has_parts = info.step_breakdown.Unpack(parts)
    return {"duration_ps": info.duration_ps, "parts_ps": dict(parts.type_ps) if has_parts else {}}


if __name__ == "__main__":
    main()
