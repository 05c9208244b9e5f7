"""Write profiler traces of synthetic runs on GPUs and TPUs, with their true figures.

python scripts/synthesize.py                    # the samples, and their part of the README
python scripts/synthesize.py run OUT a100 --precision tf32 --input-ms 3
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

# Run by path, Python searches for modules only in this folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.synthetic import gpu, samples, tpu
from scripts.synthetic.network import Network
from scripts.synthetic.run import Run

FOLDER = Path(__file__).resolve().parent.parent / "sample_traces"
README = "README.md"
MARKS = "<!-- synthetic -->\n", "<!-- /synthetic -->\n"
"""The marks around the part of the README that this script writes."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.set_defaults(write=lambda _: write_samples(FOLDER))
    run = parser.add_subparsers().add_parser("run", help="write one run")
    _add_options(run)
    run.set_defaults(write=lambda options: _write(_run(options), options.folder))
    options = parser.parse_args(arguments)
    try:
        options.write(options)
    except ValueError as error:
        parser.error(str(error))


def write_samples(folder: Path) -> None:
    """Write the project's samples and describe them in the folder's README."""
    for sample in samples.SAMPLES:
        _write(sample.run, folder / sample.name)
    text = "\n".join(map(samples.describe, samples.SAMPLES))
    readme = folder / README
    existing = readme.read_text(encoding="utf-8") if readme.is_file() else "# Samples\n"
    before, _, rest = existing.partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    text_with_samples = f"{before.rstrip()}\n\n{MARKS[0]}\n{text}\n{MARKS[1]}{after}"
    readme.write_text(text_with_samples, encoding="utf-8")


def _write(run: Run, folder: Path) -> None:
    truth = samples.write(run, folder)
    size = (folder / samples.TRACE).stat().st_size
    print(f"{folder}: {size} bytes, steps of {truth.step_ms:.3f} ms")


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path)
    parser.add_argument("device", choices=(*gpu.GPUS, *tpu.TPUS))
    parser.add_argument("--precision", choices=("fp32", "tf32", "fp16", "bf16"), default="fp32")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--input-ms", type=float, default=0.0, help="wait for each batch")
    parser.add_argument("--gap-us", type=float, default=0.0, help="between two kernels, at least")
    parser.add_argument("--dispatch-us", type=float, default=6.0, help="host time per launch")
    parser.add_argument("--between-ms", type=float, default=0.1, help="between two steps")
    parser.add_argument("--copy", choices=("pinned", "pageable"), default="pinned")
    parser.add_argument("--overlap", action="store_true", help="copy while computing")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=128, help="channels; 144 is unaligned")
    parser.add_argument("--batch-norm", choices=("fused", "unfused", "none"), default="fused")
    parser.add_argument("--depthwise", action="store_true")


def _run(options: argparse.Namespace) -> Run:
    network = Network(
        batch=options.batch, width=options.width, batch_norm=options.batch_norm, depthwise=options.depthwise
    )
    names = ("device", "precision", "steps", "input_ms", "gap_us", "dispatch_us", "between_ms",
             "copy", "overlap")  # fmt: skip
    return Run(network=network, **{name: getattr(options, name) for name in names})


if __name__ == "__main__":
    main()
