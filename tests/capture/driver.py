"""Runs capture.profile as the command line does: `driver.py '{"script": …}'`."""

import json
import sys
from pathlib import Path

from tfdoctor.capture import Kind, Plan, profile
from tfdoctor.terms.errors import TfdoctorError

if __name__ == "__main__":
    options = json.loads(sys.argv[1])
    options["args"] = tuple(options.get("args", ()))
    options["kind"] = Kind(options.get("kind", "script"))
    options["out"] = Path(options["out"]) if "out" in options else None
    try:
        sys.exit(profile(Plan(**options)).exit_code)
    except TfdoctorError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(error.exit_code)
