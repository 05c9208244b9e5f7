"""The pictures of a page: what they show, by the diagnosis they are drawn from."""

from tests.history.made import regressed
from tests.report.kit import *


@cases(
    ({3: 429.0, 4: 990.0}, ["▲", "990 ms<br>▲"]),
    ({3: 429.0, 13: 990.0}, ["429 ms<br>▲", "990 ms<br>▲"]),
    (dict.fromkeys(range(0, 20, 4), 400.0), ["▲"] * 5),
)
def test_times_of_outliers_in_a_row_do_not_stand_over_each_other(
    outliers: dict[int, float], written: list[str]
) -> None:
    steps = full().steps
    rows = tuple(
        replace(steps.rows[0], number=at, total_ms=outliers.get(at, 52.0), steady=at not in outliers)
        for at in range(20)
    )
    made = chart("steps", replace(full(), steps=replace(steps, rows=rows)))
    assert [note["text"] for note in json.loads(made.figure)["layout"]["annotations"]] == written


def chart(name: str, diagnosis: Diagnosis) -> Figure:
    (found,) = (one for one in charts(diagnosis) if one.name == name)
    return found


def boxes(of: Figure, *parts: str) -> list[tuple[Any, ...]]:
    """Return these parts of each box of a figure."""
    data = json.loads(of.figure)["data"][0]
    return list(zip(*(data[part] for part in parts), strict=True))


def test_plotly_knows_every_part_of_a_figure() -> None:
    shown = (figure for one in (full(), unexplained(), tried(), diagnoses.run()) for figure in charts(one))
    history = (figure for series in regressed().series for figure in history_charts(series, 1))
    drawn = (go.Figure(json.loads(one.figure)) for one in (*shown, *history))  # else a ValueError
    assert {trace.type for figure in drawn for trace in figure.data} == {"bar", "treemap", "icicle", "scatter"}


def test_a_figure_can_stand_in_a_script_element_and_has_null_for_what_json_does_not_know() -> None:
    made = figure_json([{"text": "</script>", "y": [1.0, math.nan, math.inf]}], {})
    assert "<" not in made
    assert json.loads(made)["data"] == [{"text": "</script>", "y": [1.0, None, None]}]


@cases((None, "per step, by layer"), (20.0, "per step while it was traced, by"))
def test_times_of_operations_say_that_the_profiler_ran(untraced_ms: float | None, said: str) -> None:
    steps = replace(full().steps, untraced_ms=untraced_ms)
    assert said in chart("operations", replace(full(), steps=steps)).description


def test_boxes_are_within_their_parents_and_the_run_is_their_sum() -> None:
    drawn = boxes(chart("account", diagnoses.run()), "ids", "parents", "values", "labels")
    ms = {box: value for box, _, value, _ in drawn}
    inside: dict[str, float] = defaultdict(float)
    for _, parent, value, _ in drawn:
        inside[parent] += value
    assert all(total <= ms[parent] * (1 + 1e-9) for parent, total in inside.items() if parent)
    assert (inside["run"], len(ms)) == (ms["run"], len(drawn))
    assert "prepare.py:33" in {label for *_, label in drawn}


def test_it_comes_first_of_a_run_and_is_absent_without_lines() -> None:
    bare = replace(account(), rows=tuple(replace(row, lines=()) for row in account().rows))
    shown = (diagnoses.run(), replace(diagnoses.run(), run=bare), full())
    assert [charts(one)[0].name for one in shown] == ["account", "steps", "steps"]


def test_a_line_of_the_step_contains_what_it_calls() -> None:
    lines = (
        PhaseLine(at=Location("train.py", 7), ms=3.0, calls="numpy.histogram", samples=30),
        PhaseLine(at=Location("train.py", 7), ms=1.0, samples=10),
        PhaseLine(at=None, ms=0.5, calls="a.b.c", samples=5),
    )
    profile = Profile(python=(PythonPart(part="host", ms=5.0, lines=lines),))
    shown = chart("python", replace(full(), profile=profile))
    assert boxes(shown, "parents", "labels", "values") == [
        ("", "Python of a step", 5.0),
        ("step", "host", 5.0),
        ("host", "train.py:7", 4.0),
        ("host 0", "numpy.histogram", 3.0),
        ("host", "no line of the program", 0.5),
        ("host 1", "b.c", 0.5),
    ]
    assert shown.table.rows[1] == ("host", "train.py:7", "", "1.00 ms")


def test_a_step_without_samples_of_python_has_no_icicle() -> None:
    assert "python" not in [one.name for one in charts(replace(diagnoses.full(), profile=Profile()))]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, by WCAG 2.2."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


COLOURS = {*PART_COLOURS.values(), *PHASE_COLOURS.values()}


@each(*sorted({*COLOURS, *(shade(at / 20) for at in range(21))}))
def test_text_on_every_colour_can_be_read(colour: str) -> None:
    assert contrast(colour, ink(colour)) >= 4.5


@cases(*product(sorted(COLOURS), (LIGHT_PAGE, DARK_PAGE)))
def test_colours_stand_out_from_both_pages(colour: str, surface: str) -> None:
    """Graphics need 3:1 (1.4.11)."""
    assert contrast(colour, surface) >= 3


def test_the_scale_has_its_own_colours_at_its_stops() -> None:
    assert [shade(at) for at, _ in SHARE_SCALE] == [colour for _, colour in SHARE_SCALE]


# The roofline


RATES = DeviceRates(flop_s=1e14, bytes_s=1e12)


def test_the_limit_is_the_smaller_of_compute_and_memory() -> None:
    assert [limit_at(at, RATES) for at in (10.0, 1000.0)] == [1e13, 1e14]
    assert [limit_at(10.0, rates) for rates in (replace(RATES, bytes_s=None), DeviceRates())] == [1e14, None]


def test_the_table_says_what_each_operation_reaches() -> None:
    """2.4 ms with 4.8e11 FLOPs and 3.6e9 bytes: 2e14 FLOP/s at 133 FLOP per byte, of 1e14."""
    found = sure(figure(full().operations, RATES))
    assert found.table.rows[0] == ("conv2_block1", "Conv2D", "2.40 ms", "133", "200 TFLOP/s", "200 %")
    assert "The level line is the 16-bit peak, 100 TFLOP/s." in found.description


@each(None, RATES)
def test_without_rates_or_flops_there_is_no_picture(rates: DeviceRates | None) -> None:
    rows = [replace(row, flops=None) for row in full().operations] if rates else full().operations
    assert figure(rows, rates) is None


def test_numbers_that_are_none_make_no_point() -> None:
    first = full().operations[0]
    bad = [replace(first, operation="MatMul", self_ms=time) for time in (0.0, float("nan"))]
    assert figure([*bad, first], RATES) is None


def test_an_operation_without_a_name_has_a_point() -> None:
    """No trace has one, an edited report may."""
    assert figure([replace(row, layer="", operation="") for row in full().operations], RATES) is not None


def test_the_heaviest_point_has_its_name_beside_it() -> None:
    """The others lie at the same place."""
    assert boxes(sure(figure(full().operations, RATES)), "text")[:2] == [("conv2_block1<br>Conv2D",), ("",)]


shares = st.floats(0.0, 1.0)
points = st.lists(
    st.tuples(shares, shares, st.floats(8.0, 28.0), st.tuples(st.text("x", min_size=1, max_size=36))), max_size=40
)


def test_a_point_alone_has_its_label_where_there_is_room() -> None:
    left, right = ((at, 0.5, 10.0, ("conv2d_1", "Conv2D")) for at in (0.05, 0.95))
    assert positions([left, right]) == ["middle right", "middle left"]


def test_of_points_at_one_place_none_has_a_label_on_another() -> None:
    same = (0.5, 0.5, 10.0, ("conv2d_1", "Conv2D"))
    found = positions([same] * 9)
    assert found[:2] == ["middle right", "middle left"]
    assert found[4:] == [""] * 5


@given(points)
def test_labels_lie_within_the_axes_and_apart(made: list[LabelledPoint]) -> None:
    found = positions(made)
    labels = [
        (at, label_boxes(point)[where]) for at, (point, where) in enumerate(zip(made, found, strict=True)) if where
    ]
    assert len(labels) <= MOST
    assert all(box[0] >= 0 and box[1] <= WIDTH and box[2] >= 0 and box[3] <= HEIGHT for _, box in labels)
    assert not any(meets(one, other) for (_, one), (_, other) in combinations(labels, 2))
    assert not any(meets(box, mark(point)) for own, box in labels for at, point in enumerate(made) if at != own)


# The timeline as paths and as data


RECTANGLE = re.compile(r"M(\d+) 0h(\d+)v14h-(\d+)z")

spans = st.lists(st.tuples(st.floats(0, 40), st.floats(0, 10)), max_size=60).map(sorted)


@given(spans)
def test_rectangles_do_not_overlap_and_cover_all_bars(found: list[tuple[float, float]]) -> None:
    bars = tuple(TimelineWork(start, time, "device", "x") for start, time in found)
    ((_, _, paths),) = lanes(timeline_of(1, 50.0, [("a", bars)]))
    drawn = [tuple(map(int, one)) for path in paths.values() for one in RECTANGLE.findall(path)]
    rectangles = [(start, start + width) for start, width, back in drawn if width == back]
    assert len(rectangles) <= 1000
    assert all(end < start for (_, end), (start, _) in pairwise(rectangles))
    for start, time in found:
        middle = 1000 * (start + time / 2) / 50.0
        assert any(low - 1 <= middle <= high + 1 for low, high in rectangles)


@cases(
    (52.0, ["0", "10.0 ms", "20.0 ms", "30.0 ms", "40.0 ms"]),
    (1.0, ["0", "0.20 ms", "0.40 ms", "0.60 ms", "0.80 ms"]),
    (0.09, ["0", "0.02 ms", "0.04 ms", "0.06 ms"]),
)
def test_the_axis_has_round_times(total_ms: float, labels: list[str]) -> None:
    shown = timeline_of(1, total_ms, [("a", (TimelineWork(0.0, total_ms, "device", "x"),))])
    assert [label for _, label in ticks(shown)] == labels
