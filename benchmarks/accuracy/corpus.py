"""What is true of each pair of ``pairs.zip``: declared by hand, from measurements, never from a report.

`fault` and `fixed` name the rules that must be found in that twin: what was planted, and what is truly
there beside it. Everything else that promises a saving is counted as falsely found, except what is
`undecided`: where the advised change, made by hand (``judge.py``), moves the step by less than 5 %
either way, or now so and now otherwise.
"""

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PAIRS = Path(__file__).with_name("pairs.zip")

TWINS = ("fault", "fixed")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two scripts that differ in one fault, and what a doctor must say of each."""

    name: str
    family: str  # the entry of the rules' design that the fault belongs to
    fault: Sequence[str] = ()  # rules that must be found in the faulty twin
    fixed: Sequence[str] = ()  # the same for the fixed one
    undecided: Sequence[str] = ()  # rules that may be found in either, or not
    remedy: str = ""  # the rule whose remedy the fixed twin follows: its saving is compared
    exists: bool = True  # whether there is a rule for the family yet
    trap: str = ""  # where nothing was planted: what a naive check would say

    def text(self, twin: str) -> str:
        """Return one of the twins."""
        with zipfile.ZipFile(PAIRS) as archive:
            return archive.read(f"{self.name}/{twin}.py").decode()

    def script(self, twin: str, folder: Path) -> Path:
        """Write one of the twins into a folder for all pairs, where it can run, and return its path."""
        path = folder / self.name / f"{twin}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(twin), encoding="utf-8")
        return path

    def truth(self, twin: str) -> frozenset[str]:
        """Return the rules that must be found in one of the twins."""
        return frozenset(self.fault if twin == "fault" else self.fixed)


INPUT, PYTHON, MAP = "input-bound", "python-input", "sequential-map"
EACH = "per-element-map"
READS, AGAIN, TUNING = "serial-reads", "uncached-preprocessing", "disabled-autotune"
AHEAD, WIDE, PADDED = "missing-prefetch", "float32-matmul", "unaligned-dimension"
STARVED, FILES = "starved-cpu", "small-files"
NORM, SMALL = "unfused-batch-norm", "small-batch"
TABLE, LAYOUT, PRODUCTS = "embedding-gradient", "layout-change", "fragmented-matmul"
RANDOM, OUTLIER, SHUFFLED = "slow-random", "step-outlier", "shuffle-order"
EAGER, TRACED, BETWEEN = "eager-step", "retracing", "between-steps"
COPIED, LATE, SCALED = "serial-batch", "late-shrink", "loss-scaling"
POOLED, REPEATED, UPDATES = "max-pool-gradient", "broadcast-cost", "optimizer-overhead"
COMPILED = "recompilation"

CORPUS = (
    # Input
    Pair("augment_on_the_way", AHEAD, (AHEAD, INPUT), undecided=(INPUT, MAP, TUNING), remedy=AHEAD),
    Pair("loop_without_prefetch", AHEAD, (AHEAD, INPUT), undecided=(INPUT, MAP, TUNING), remedy=AHEAD),
    Pair("random_crop_map", MAP, (MAP, INPUT), (INPUT, STARVED), remedy=MAP),
    Pair("spectrogram_map", MAP, (MAP, INPUT, AGAIN), (INPUT, AGAIN), (STARVED,), MAP),
    Pair("smoothing_in_numpy", PYTHON, (PYTHON, INPUT), (AGAIN,), (INPUT,), PYTHON),
    Pair("tokens_from_generator", PYTHON, (PYTHON, INPUT), undecided=(INPUT,), remedy=PYTHON),
    Pair("pydataset_of_images", PYTHON, (PYTHON, INPUT), (INPUT, AGAIN), (STARVED,), PYTHON),
    Pair("batches_in_the_loop", PYTHON, (PYTHON, WIDE), (INPUT, WIDE), remedy=PYTHON),
    Pair("decode_every_epoch", AGAIN, (AGAIN, INPUT, STARVED), (), (SMALL,), AGAIN),
    Pair("shards_one_by_one", READS, (READS, INPUT), (INPUT,), (STARVED,), READS),
    Pair("four_files_a_frame", FILES, (FILES, INPUT, AGAIN), (), (INPUT, STARVED), FILES),
    Pair("lines_of_csv", EACH, (EACH, INPUT), (INPUT,), (SMALL,), EACH),
    Pair(
        "one_private_thread",
        TUNING,
        (TUNING, INPUT, AGAIN, SHUFFLED),
        (INPUT, AGAIN, STARVED, SHUFFLED),
        remedy=TUNING,
    ),
    Pair("photos_at_full_size", STARVED, (STARVED, INPUT), undecided=(STARVED, INPUT), remedy=STARVED),
    Pair("photos_into_batches", COPIED, (COPIED, INPUT), (INPUT,), (STARVED,), COPIED),
    Pair("crops_after_the_buffer", LATE, (LATE, SHUFFLED), (SHUFFLED,), (WIDE, PADDED)),
    Pair("batches_shuffled_whole", SHUFFLED, (SHUFFLED,), undecided=(WIDE,)),
    # Precision and the matrix unit
    Pair("wide_mlp", WIDE, (WIDE,), remedy=WIDE),
    Pair("plain_convnet", WIDE, (WIDE,), remedy=WIDE),
    Pair("small_transformer", WIDE, (WIDE,), remedy=WIDE),
    Pair("odd_channels", PADDED, (PADDED, WIDE), (WIDE,), remedy=PADDED),
    Pair("odd_autoencoder", PADDED, (PADDED, WIDE), (WIDE,), remedy=PADDED),
    Pair("a_product_for_each_head", PRODUCTS, (PRODUCTS,), undecided=(WIDE,), remedy=PRODUCTS),
    Pair("halves_without_scale", SCALED, (SCALED,), undecided=(INPUT,)),
    # Operations
    Pair("normalized_resnet", NORM, (NORM, WIDE), (WIDE,), remedy=NORM),
    Pair("normalized_generator", NORM, (NORM, WIDE), (WIDE,), remedy=NORM),
    Pair("channels_there_and_back", LAYOUT, (LAYOUT,), (WIDE,), (WIDE,), LAYOUT),
    Pair("one_hot_table", TABLE, (TABLE,), (SMALL,), (WIDE,), TABLE),
    Pair("few_rows_of_a_table", TABLE, (TABLE,), (SMALL,), (WIDE,), TABLE),
    Pair("truncated_jitter", RANDOM, (RANDOM, OUTLIER), (OUTLIER,), (WIDE, SMALL), RANDOM),
    Pair("a_variable_for_each_sensor", UPDATES, (UPDATES,), (), (WIDE,), UPDATES),
    Pair("noise_level_everywhere", REPEATED, (REPEATED,), (), (WIDE,), REPEATED),
    # Execution
    Pair("debugging_left_on", EAGER, (EAGER,), (WIDE,), remedy=EAGER),
    Pair("a_number_for_the_step", TRACED, (TRACED,), (WIDE,), (WIDE,), remedy=TRACED),
    Pair("histogram_each_batch", BETWEEN, (BETWEEN, WIDE), (WIDE,), remedy=BETWEEN),
    Pair("tiny_batches", SMALL, (SMALL,), remedy=SMALL),
    Pair("sentences_as_long_as_they_are", COMPILED, (COMPILED,), remedy=COMPILED),
    # Traps
    Pair("plain_map", MAP, trap="a plain map is sequential"),
    Pair("prefetch_by_itself", AHEAD, trap="no prefetch in the source"),
    Pair("slow_first_batch", INPUT, (), (SHUFFLED,), trap="the first batch takes long"),
    Pair("cache_behind_random", AGAIN, trap="a random operation before a cache"),
    Pair("hidden_python", PYTHON, trap="Python in a map"),
    Pair(
        "precision_behind_input",
        WIDE,
        (INPUT, PYTHON),
        (INPUT, PYTHON),
        trap="float32 products, in a job that waits for its input",
    ),
    Pair("ten_classes", PADDED, trap="10 classes and 3 colours are no multiples of 16"),
    Pair("batch_norm_by_name", NORM, trap="layers named batch_norm"),
    Pair("frozen_normalization", NORM, trap="batch normalization, in inference mode"),
    Pair("depthwise_on_cpu", "depthwise-convolution", (), (WIDE,), trap="depthwise convolutions, on a CPU"),
    Pair(
        "clips_into_batches",
        COPIED,
        undecided=(INPUT, WIDE, PADDED),
        trap="one thread copies large examples into batches",
    ),
    Pair("pooling_by_maximum", POOLED, (WIDE,), (WIDE,), trap="max pooling, which oneDNN runs"),
    Pair(
        "weights_tiled_over_channels",
        REPEATED,
        undecided=(WIDE, INPUT),
        trap="a small tensor repeated in memory, which a CPU does as fast as broadcasting",
    ),
    Pair("loss_read_each_step", "host-sync", trap="float(loss) each step, on a CPU"),
)


def named(name: str) -> Pair:
    """Return the pair of this name."""
    return next(pair for pair in CORPUS if pair.name == name)


def chosen(names: Sequence[str]) -> Iterator[tuple[Pair, Sequence[str]]]:
    """Yield the pairs of the names given (``name`` or ``name/fault``; none: all) and their twins.

    Raises:
        SystemExit: a name that is not in the corpus.
    """
    if unknown := {name.split("/")[0] for name in names} - {pair.name for pair in CORPUS}:
        raise SystemExit(f"no such pair: {', '.join(sorted(unknown))}")
    for pair in CORPUS:
        named = [t for t in TWINS if not names or {pair.name, f"{pair.name}/{t}"} & set(names)]
        if named:
            yield pair, named
