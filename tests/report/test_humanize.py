"""Numbers and names as a reader sees them."""

from tests.report.kit import *

UNKNOWN = (math.nan, math.inf)
SECONDS = (0.0, 0.042, 0.42, 0.998, 6.1, 72.0, 99.94, 131.2, 599.6, 725.0, 3599.7, 12e3, 12_345.0, 187_200.0, -6.1)
SHARES = (0.83, 0.004, 0.0004, 0, 1, 0.999, 0.05, 5.8, -0.03, math.nan)
AMOUNTS = (
    nbytes(1.5e6), nbytes(999_999), nbytes(512), bandwidth(12.34e9), flop_rate(1.2e12), flop_rate(-5e3),
    count(1_234_567), count(3.5), count(math.nan), nbytes(math.inf), ratio(0.83), ms(52),
)  # fmt: skip
SAID: dict[Callable[..., str], Sequence[Any]] = {
    humanize.milliseconds: (52, 1240, 0.42, 62_200, 999.4, 999.6, 0.0083, 0.00001, 0, -3, *UNKNOWN, None),
    humanize.duration: [1000 * seconds for seconds in (*SECONDS, *UNKNOWN)],
    humanize.about_duration: [1000 * seconds for seconds in (*SECONDS, *UNKNOWN)],
    humanize.percent: SHARES,
    humanize.share: SHARES,
    humanize.about_ms: (9.0, 8.13, 48.2, 1234, 20e3),
    humanize.quantity: AMOUNTS,
    humanize.time_span: ((26.8, 38.7), (0.9, 1200.0), (6.43, 6.43), (None, 3.0)),
    humanize.counted: ((1, "change"), (3, "change"), (20, "step"), (2, "entry", "entries")),
    humanize.location: (Location("train.py", 12), None),
    energy: (0.0, 0.0042, 42.0, 1_800.0, 3_600.0, 7.2e6, None),  # joules, then hours of a watt
    text.sentence: ("the trace ends early", "xprof failed", "tf.data is off.", ""),
    text.name: (INVISIBLE, HOSTILE),  # each rendering knows its markup, and escapes it
    text.block: ("if x:\n\ty\x00\r\n",),
}


def test_numbers_and_names_are_said_as_one_says_them(golden: Compare) -> None:
    told = [
        "".join(f"{given!r} | {says(*given if isinstance(given, tuple) else (given,))}\n" for given in all_given)
        for says, all_given in SAID.items()
    ]
    texts = [f"## {says.__name__}\n\n{lines}" for says, lines in zip(SAID, told, strict=True)]
    golden("humanize.txt", "\n".join(texts))


@given(st.floats(0, 1e12))
def test_a_longer_run_is_never_said_to_take_less(seconds: float) -> None:
    units = {"ms": 0.001, "µs": 1e-6, "s": 1, "min": 60, "h": 3600, "d": 86400}
    parts = humanize.duration(1000 * seconds).replace(",", "").replace("<", "").split()
    said = sum(float(n) * units[unit] for n, unit in zip(parts[::2], parts[1::2], strict=True))
    assert said == pytest.approx(seconds, rel=0.06, abs=1e-6)


@given(st.floats(), st.sampled_from(Unit))
def test_any_number_becomes_text(value: float, unit: Unit) -> None:
    shown = humanize.quantity(Quantity(value, unit))
    assert shown
    assert "nan" not in shown
    assert "inf" not in shown


@given(st.floats(min_value=1e-3, max_value=1e8), st.floats(min_value=1.01, max_value=100))
def test_a_longer_time_never_looks_shorter(value: float, times: float) -> None:
    def parsed(shown: str) -> float:
        amount, unit = shown.split()
        return float(amount) * {"µs": 1e-3, "ms": 1, "s": 1e3}[unit]

    assert parsed(humanize.milliseconds(value * times)) >= parsed(humanize.milliseconds(value))


@each(text.name, text.prose, text.sentence)
@given(st.text())
def test_clean_text_is_one_printable_line(clean: object, raw: str) -> None:
    assert callable(clean)
    shown = clean(raw + "\u2028" + raw)
    assert "\n" not in shown
    assert all(char.isprintable() or char.isspace() for char in shown)
    shown.encode()


def test_a_long_name_keeps_its_ends() -> None:
    shown = text.name(diagnoses.LONG)
    assert len(shown) == text.NAME_LIMIT
    assert shown.startswith("tensorflow::functor::")
    assert shown.endswith("::operator()")


INTERVAL = "a speed of 0.47 (0.44 to 0.59 in eight shapes, 31 % ± 2 of 12.5 ms, 2026-11-23) and more words"


@each(*range(60, len(INTERVAL)))
def test_text_is_shortened_between_words_and_no_number_loses_its_interval(limit: int) -> None:
    kept = text.shorten(INTERVAL, limit)
    start, end = kept.split(" … ")
    assert len(kept) <= limit
    assert f"{INTERVAL} ".startswith(f"{start} ")
    assert f" {INTERVAL}".endswith(f" {end}")
    for whole in ("0.47 (0.44 to 0.59 in", "31 % ± 2 of", "12.5 ms"):
        for part in (start, end):
            assert whole in part or whole.split()[0] not in part


FIT = "train.py:19 · 14.2 s (63 %) · steps · keras.src.backend.tensorflow.trainer.TensorFlowTrainer.fit"


@cases(
    (FIT, 80, "train.py:19 · 14.2 s (63 %) · steps · … TensorFlowTrainer.fit"),
    (FIT, 58, "train.py:19 · 14.2 s (63 %) · … TensorFlowTrainer.fit"),
    ("/usr/lib/python3/packages/some/module_name.py:1919", 42, "/usr/lib/python3/packages … name.py:1919"),
)
def test_a_name_is_shortened_between_its_parts(shown: str, limit: int, kept: str) -> None:
    assert text.shorten(shown, limit) == kept


def test_a_long_word_in_a_sentence_is_shortened_like_a_name() -> None:
    assert len(text.prose(f"before {diagnoses.LONG} after")) < text.NAME_LIMIT + 20
