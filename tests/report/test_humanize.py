"""Numbers and names as a reader sees them."""

from tests.report.kit import *

MINUS = "\N{MINUS SIGN}"

TIMES = [
    (52, "52.0 ms"),
    (1240, "1.24 s"),
    (0.42, "0.42 ms"),
    (62_200, "62.2 s"),
    (999.4, "999 ms"),
    (999.6, "1.00 s"),
    (0.0083, "8.3 µs"),
    (0.00001, "<0.1 µs"),
    (0, "0 ms"),
    (-3, f"{MINUS}3.00 ms"),
    (math.nan, "unknown"),
    (math.inf, "unknown"),
    (None, "unknown"),
]
DURATIONS = [
    (0.0, "0 s", "0 s"),
    (0.042, "42 ms", "42 ms"),
    (0.42, "0.42 s", "0.42 s"),
    (0.998, "1 s", "1 s"),
    (6.1, "6.1 s", "6.1 s"),
    (72.0, "72 s", "72 s"),
    (99.94, "99.9 s", "100 s"),
    (131.2, "131 s", "130 s"),
    (599.6, "10 min", "10 min"),
    (725.0, "12 min 5 s", "12 min"),
    (3599.7, "1 h", "1 h"),
    (12_000.0, "3 h 20 min", "3 h 20 min"),
    (12_345.0, "3 h 26 min", "3 h 30 min"),
    (187_200.0, "2 d 4 h", "2 d 4 h"),
    (-6.1, f"{MINUS}6.1 s", f"{MINUS}6.1 s"),
    (math.nan, "unknown", "unknown"),
    (math.inf, "unknown", "unknown"),
]
SHARES = [
    (0.83, "83 %", "83 %"),
    (0.004, "0.4 %", "<1 %"),
    (0.0004, "<0.1 %", "<1 %"),
    (0, "0 %", "0 %"),
    (1, "100 %", "100 %"),
    (0.999, ">99 %", ">99 %"),
    (0.05, "5 %", "5 %"),
    (5.8, "580 %", "580 %"),
    (-0.03, f"{MINUS}3 %", f"{MINUS}3 %"),
    (math.nan, "unknown", "unknown"),
]
SAID: list[tuple[Callable[..., str], tuple[Any, ...], str]] = [
    *((humanize.milliseconds, (value,), shown) for value, shown in TIMES),
    *((humanize.duration, (1000 * seconds,), shown) for seconds, shown, _ in DURATIONS),
    *((humanize.about_duration, (1000 * seconds,), about) for seconds, _, about in DURATIONS),
    *((humanize.percent, (value,), precise) for value, precise, _ in SHARES),
    *((humanize.share, (value,), rough) for value, _, rough in SHARES),
    (humanize.about_ms, (9.0,), "9 ms"),
    (humanize.about_ms, (8.13,), "8.1 ms"),
    (humanize.about_ms, (48.2,), "48 ms"),
    (humanize.about_ms, (1234,), "1.2 s"),
    (humanize.about_ms, (20e3,), "20 s"),
    (humanize.quantity, (nbytes(1.5e6),), "1.5 MB"),
    (humanize.quantity, (nbytes(999_999),), "1 MB"),
    (humanize.quantity, (nbytes(512),), "512 B"),
    (humanize.quantity, (bandwidth(12.34e9),), "12.3 GB/s"),
    (humanize.quantity, (flop_rate(1.2e12),), "1.2 TFLOP/s"),
    (humanize.quantity, (flop_rate(-5e3),), f"{MINUS}5 kFLOP/s"),
    (humanize.quantity, (count(1_234_567),), "1,234,567"),
    (humanize.quantity, (count(3.5),), "3.5"),
    (humanize.quantity, (count(math.nan),), "unknown"),
    (humanize.quantity, (nbytes(math.inf),), "unknown"),
    (humanize.quantity, (ratio(0.83),), "83 %"),
    (humanize.quantity, (ms(52),), "52.0 ms"),
    (humanize.time_span, (26.8, 38.7), "26.8 to 38.7 ms"),  # the unit once
    (humanize.time_span, (0.9, 1200.0), "0.90 ms to 1.20 s"),
    (humanize.time_span, (6.43, 6.43), "6.43 ms"),
    (humanize.time_span, (None, 3.0), "unknown to 3.00 ms"),
    (humanize.counted, (1, "change"), "one change"),
    (humanize.counted, (3, "change"), "three changes"),
    (humanize.counted, (20, "step"), "20 steps"),
    (humanize.counted, (2, "entry", "entries"), "two entries"),
    (humanize.location, (Location("train.py", 12),), "train.py:12"),
    (humanize.location, (None,), ""),
    (energy, (0.0,), "0 J"),  # joules, then hours of a watt
    (energy, (0.0042,), "0.0042 J"),
    (energy, (42.0,), "42 J"),
    (energy, (1_800.0,), "1.8 kJ"),
    (energy, (3_600.0,), "1 Wh"),
    (energy, (7.2e6,), "2 kWh"),
    (energy, (None,), "unknown"),
    (text.sentence, ("the trace ends early",), "The trace ends early."),
    (text.sentence, ("xprof failed",), "xprof failed."),
    (text.sentence, ("tf.data is off.",), "tf.data is off."),
    (text.sentence, ("",), ""),
    (text.name, (INVISIBLE,), r"a\x00b\u202ec d\ud800e\x1b[31mf g"),
    (text.name, (HOSTILE,), HOSTILE),  # each rendering knows its markup, and escapes it
    (text.block, ("if x:\n\ty\x00\r\n",), "if x:\n    y\\x00"),
]


def test_numbers_and_names_are_said_as_one_says_them() -> None:
    told = [(says.__name__, given, says(*given), shown) for says, given, shown in SAID]
    assert [row for row in told if row[2] != row[3]] == []


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


@pytest.mark.parametrize("clean", [text.name, text.prose, text.sentence])
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


@pytest.mark.parametrize("limit", range(60, len(INTERVAL)))
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


@pytest.mark.parametrize(
    ("shown", "limit", "kept"),
    [
        (FIT, 80, "train.py:19 · 14.2 s (63 %) · steps · … TensorFlowTrainer.fit"),
        (FIT, 58, "train.py:19 · 14.2 s (63 %) · … TensorFlowTrainer.fit"),
        ("/usr/lib/python3/packages/some/module_name.py:1919", 42, "/usr/lib/python3/packages … name.py:1919"),
    ],
)
def test_a_name_is_shortened_between_its_parts(shown: str, limit: int, kept: str) -> None:
    assert text.shorten(shown, limit) == kept


def test_a_long_word_in_a_sentence_is_shortened_like_a_name() -> None:
    assert len(text.prose(f"before {diagnoses.LONG} after")) < text.NAME_LIMIT + 20
