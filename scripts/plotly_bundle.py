"""Builds the plotly.js of the report's page, with the kinds of trace that it draws: ``make plotly``.

The whole of plotly.js is 4.8 MB, most of it for maps and 3-D; this part is 1.3 MB. It needs npm, and
the result is in the repository, so that nobody who installs tfdoctor does.
"""

import base64
import subprocess
import sys
import tempfile
from pathlib import Path

import zopfli.gzip
from plotly.offline import get_plotlyjs_version

from tfdoctor.report.template import script_hash

BUNDLE = Path(__file__).parents[1] / "src/tfdoctor/report/assets/plotly.b85"

ESBUILD = "0.28.1"

TRACES = ("bar", "icicle", "treemap")
"""What is drawn beside scatter, which the core contains."""


ROUNDS = 5
"""Of zopfli's search, half a minute: 3 % smaller than gzip's best, in every page."""


def main() -> None:
    """Write the bundle of the plotly.js that the installed plotly was made with: its hash, then itself, packed."""
    version = get_plotlyjs_version()
    with tempfile.TemporaryDirectory() as folder:
        _npm(folder, "install", f"plotly.js@{version}", f"esbuild@{ESBUILD}")
        script = _bundled(Path(folder))
    named = f"/*! plotly.js {version} (core, {', '.join(TRACES)}), MIT licence, plotly.com */\n"
    packed = base64.b85encode(zopfli.gzip.compress((named + script).encode(), numiterations=ROUNDS)).decode()
    text = packed.replace("<", ",")  # so that it can neither close nor open an element
    BUNDLE.write_text(f"{script_hash(named + script)}\n{text}\n", encoding="ascii")
    sys.stdout.write(f"{BUNDLE.name}: {BUNDLE.stat().st_size / 1e3:.0f} kB\n")


def _bundled(folder: Path) -> str:
    traces = ", ".join(f'require("plotly.js/lib/{trace}")' for trace in TRACES)
    entry = folder / "entry.js"
    entry.write_text(
        f'const Plotly = require("plotly.js/lib/core");\nPlotly.register([{traces}]);\n'
        "globalThis.Plotly = Plotly;\n",
        encoding="utf-8",
    )
    options = ("--bundle", "--minify", "--format=iife", "--target=es2020", "--legal-comments=eof")
    out = folder / "bundle.js"
    paths = ("--define:global=globalThis", f"--outfile={out}", str(entry))
    _npm(folder, "exec", "--", "esbuild", *options, *paths)
    return out.read_text("utf-8")


def _npm(folder: str | Path, *words: str) -> None:
    subprocess.run(  # noqa: S603 - our own words
        ["npm", *words],  # noqa: S607 - the developer's npm
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    main()
