"""The page in a real browser: what a reader sees, and what the browser does not do."""

from tests.history.made import regressed
from tests.report.kit import *
from tfdoctor.diagnose.summary.timeline import drawn

pytestmark = pytest.mark.browser

DRAWN = "html[data-charts=drawn]"
Scheme = Literal["light", "dark"]
NARROW = ("full", "hostile", "huge", "unknown-numbers", "hostile-hosts", "tried", "hostile-run")
"""What may be too wide for a phone."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    shown = {kind: diagnoses.ALL[kind]() for kind in {*NARROW, "run"}}
    shown["all"] = replace(shown["run"], trials=shown["tried"].trials, hosts=several_hosts().hosts)
    for kind, diagnosis in shown.items():
        (folder / f"{kind}.html").write_text(html.render(diagnosis), encoding="utf-8")
    return {kind: folder / f"{kind}.html" for kind in shown}


Opened = Callable[..., Page]


def listened(context: BrowserContext, heard: list[str], script: str = "") -> Page:
    """Return a new page that notes its messages and the addresses that it asks for."""

    def dismiss(dialog: Dialog) -> None:
        heard.append(dialog.message)
        dialog.dismiss()

    page = context.new_page()
    page.add_init_script(path=Path(__file__).with_name("browser.js"))
    page.add_init_script(script)
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", dismiss)
    page.on("request", lambda request: heard.append(request.url))
    return page


@pytest.fixture(scope="module")
def shared(browser: Browser) -> tuple[Page, list[str]]:
    """A page that opens one file after the other: from the second on, Chromium has compiled their scripts."""
    heard: list[str] = []
    return listened(browser.new_context(), heard), heard


@pytest.fixture
def opened(browser: Browser, shared: tuple[Page, list[str]], files: dict[str, Path]) -> Iterator[Opened]:
    """Open a file; at the end, none has given a message or asked for an address outside of it."""
    contexts: list[BrowserContext] = []
    common, heard = shared
    heard.clear()

    def open_page(kind: str | Path, width: int = 1280, height: int = 900, **options: Any) -> Page:
        script, drawn = options.pop("script", ""), options.pop("drawn", True)
        scheme, page = options.pop("color_scheme", "light"), common
        home = (files[kind] if isinstance(kind, str) else kind).as_uri()
        expected.add(home)
        if options or script:
            contexts.append(browser.new_context(**options))
            page = listened(contexts[-1], heard, script)
        page.mouse.move(0, 0)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(media="null", color_scheme=scheme)
        page.goto(home)
        if drawn:
            page.wait_for_selector(DRAWN, state="attached")
        return page

    of_tests = ("Canvas2D: Multiple readback", "Charts are not drawn: DecompressionStream is not defined")
    expected = {"data:", "blob:", *of_tests}
    yield open_page
    for context in contexts:
        context.close()
    assert [one for one in heard if not one.startswith(tuple(expected))] == []


def until(page: Page, condition: str) -> None:
    """Wait until JavaScript says so: `wait_for_function` asks again by `eval`, which the page's policy refuses."""
    for _ in range(300):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(condition)


def unfold(page: Page, charts: int) -> None:
    """Open everything that is folded, and wait for the charts in it."""
    page.evaluate("measure.unfold()")
    until(page, f"measure.drawn({charts})")


OF_COLOURS = ["color-contrast", "link-in-text-block"]
"""The rules of axe that depend on the scheme; all others see the same page in both."""


@cases(("light", "all"), ("dark", "all"), ("light", "full"))
def test_axe_finds_no_violation(scheme: Scheme, kind: str, opened: Opened) -> None:
    """https://github.com/dequelabs/axe-core: WCAG 2 A and AA, and its best practices."""
    page = opened(kind, 1280, 800, color_scheme=scheme)
    unfold(page, 1)
    rules = {"runOnly": OF_COLOURS} if scheme == "dark" else {}
    found = Axe().run(page, options={"resultTypes": ["violations"], **rules})
    assert found.violations_count == 0, found.generate_report()


@cases(("dark", 390, NARROW), ("light", 1280, ("full", "run")))
def test_all_charts_are_drawn_in_silence(
    scheme: Scheme, width: int, kinds: tuple[str, ...], opened: Opened, files: dict[str, Path]
) -> None:
    for kind in kinds:
        page = opened(kind, width, 800, color_scheme=scheme)
        charts = files[kind].read_text("utf-8").count('class="chart"')
        assert charts >= 3, kind
        assert page.locator(".js-plotly-plot").count() == 1, kind  # the others are folded
        unfold(page, charts)
        assert page.locator(".js-plotly-plot").count() == charts, kind
        assert page.locator(".js-plotly-plot .main-svg").count() >= 3, kind
        assert page.evaluate("measure.fits()"), kind


def test_the_timeline_zooms_moves_and_names_what_is_under_the_pointer(opened: Opened) -> None:
    page = opened("full")
    axis, lanes = page.locator(".timeline .axis"), page.locator(".timeline canvas")
    assert lanes.count() == 4
    whole = axis.text_content() or ""
    page.get_by_role("button", name="Zoom in").click()
    expect(axis).not_to_have_text(whole)
    page.get_by_role("button", name="Whole step").click()
    expect(axis).to_have_text(whole)
    page.locator(".timeline").focus()
    page.keyboard.press("+")
    near = axis.text_content() or ""
    page.keyboard.press("ArrowRight")
    expect(axis).not_to_have_text(near)
    page.get_by_role("button", name="Whole step").click()
    lanes.first.hover(position={"x": 100, "y": 7})
    named = "input: 43.1\N{NO-BREAK SPACE}ms, from 0; finding 1 The step waits for input"
    expect(page.locator(".timeline output")).to_have_text(named)


def time_at(page: Page, share: float) -> float:
    """Return the time at a share of the view, in ms, by what the axis says."""
    (left, begins), *_, (right, ends) = page.evaluate("measure.times()")
    assert ends > begins
    return float(begins + (share - left) * (ends - begins) / (right - left))


@cases((1, 0.1), (30, 0.001))
def test_the_wheel_zooms_about_the_pointer_and_keys_about_the_middle(
    turns: int, within: float, opened: Opened
) -> None:
    """Also beyond the closest view, where there is nothing more to zoom."""
    page = opened("full", 1280, 1600)
    lane = page.locator(".timeline canvas").first
    width = sure(lane.bounding_box())["width"]
    axis = page.locator(".timeline .axis")

    def zoom_by(what: Callable[[], None]) -> None:
        for _ in range(turns):
            what()
        expect(axis).not_to_have_text(whole)
        page.evaluate("() => new Promise(requestAnimationFrame)")

    whole = axis.text_content() or ""
    lane.hover(position={"x": 0.75 * width, "y": 7})
    pointed = time_at(page, 0.75)
    page.keyboard.down("Control")
    zoom_by(lambda: page.mouse.wheel(0, -300))
    page.keyboard.up("Control")
    assert time_at(page, 0.75) == pytest.approx(pointed, abs=within)
    page.get_by_role("button", name="Whole step").click()
    expect(axis).to_have_text(whole)
    page.locator(".timeline").focus()
    zoom_by(lambda: page.keyboard.press("+"))
    assert time_at(page, 0.5) == pytest.approx(52.0 / 2, abs=within)


@each("light", "dark")
def test_a_finding_marks_its_bars_and_a_bar_its_findings(scheme: Scheme, opened: Opened) -> None:
    page = opened("full", 1280, 6000, color_scheme=scheme)
    links, output = page.locator(".marks a"), page.locator(".timeline output")
    assert links.all_text_contents() == ["1 The step waits for input", "3 Float32 matmul"]
    links.first.hover()
    expect(output).to_have_text("marked: 44 bars")
    until(page, "measure.lit()[0] > 0.8")
    step, stage, *operations = page.evaluate("measure.lit()")
    assert (step < 0.85, stage > 0.5, operations) == (True, True, [0, 0])
    page.locator("h1").hover()
    until(page, "measure.lit().every(share => share === 0)")
    links.last.focus()
    expect(output).to_have_text("marked: 10 bars")
    until(page, "measure.lit()[2] > 0")
    assert page.evaluate("measure.lit()")[:2] == [0, 0]
    page.locator(".timeline").focus()
    until(page, "measure.lit().every(share => share === 0)")
    page.locator(".timeline canvas").nth(1).hover(position={"x": 2, "y": 7})
    expect(output).to_contain_text("; finding 1 The step waits for input")
    assert page.evaluate("measure.marked()") == ["LI", "A", "ARTICLE"]
    page.locator("h1").hover()
    until(page, "measure.marked().length === 0")


def test_a_timeline_of_thousands_of_bars_follows_a_drag(opened: Opened) -> None:
    """A frame of 60 Hz is 16.7 ms; the limit leaves room for machines that do something else meanwhile."""
    page = opened("huge")
    times = sorted(page.evaluate("measure.frames()"))
    assert times[len(times) // 2] < 50


def test_without_scripts_the_step_and_its_timeline_are_drawn_and_all_but_charts_is_there(opened: Opened) -> None:
    """A mail client's preview runs no scripts."""
    page = opened("full", 800, drawn=False, java_script_enabled=False)
    for shapes in (page.locator(".bars rect"), page.locator(".lane path")):
        assert shapes.count() >= 6
        assert sure(shapes.first.bounding_box())["width"] > 100
    words = page.locator("body").inner_text()
    assert "Each step takes\u00a052.0\u00a0ms" in words.replace("takes ", "takes\u00a0")
    assert "num_parallel_calls=tf.data.AUTOTUNE" in words
    assert page.locator("figure table tbody tr").count() == 20 + 5 + 7 + 4
    assert (page.locator(".controls").is_hidden(), page.locator(".chart").first.is_hidden()) == (True, True)


PREPARING = "preparing data: 21.4 s, from 6.1 s to 27.5 s, prepare.py:33"


@cases((False,), (True,))
def test_the_bar_of_the_run_tells_phase_times_and_line(*, touch: bool, opened: Opened) -> None:
    page = opened("run", 390, has_touch=touch)
    svg, output = page.locator(".run-bar svg"), page.locator(".run-bar output")
    expect(output).to_contain_text("arrow keys")
    at: Position = {"x": 50, "y": 10}
    (svg.tap if touch else svg.hover)(position=at)
    expect(output).to_have_text(PREPARING)
    expect(page.locator(".run-bar rect.at")).to_have_count(1)
    if not touch:
        page.locator("h1").hover()
        expect(output).to_contain_text("arrow keys")


@each(390, 740, 1280)
def test_phases_with_room_have_their_names_on_the_bar(width: int, opened: Opened) -> None:
    page = opened("run", width, drawn=False)
    names = page.evaluate("measure.names()")
    assert all(seen == (room >= 0) for _, seen, room in names)
    assert any(not seen for _, seen, _ in names)  # or the test shows nothing
    assert ("preparing data" in {name for name, seen, _ in names if seen}) is (width > 390)


DEPTHWISE = "gradient_tape/net_1/block6a_dwconv_1/depthwise/DepthwiseBackprop (_MklDepthwise)"


def test_bars_of_the_step_are_named_by_operation_layer_and_block(opened: Opened) -> None:
    page = opened("run", drawn=False)
    first, *_, layer, part, last = page.evaluate("shortNames", DEPTHWISE)
    assert first == DEPTHWISE.partition(" ")[0]
    assert (layer, part, last) == ("block6a_dwconv_1", "depthwise", "DepthwiseBackprop")
    numbered = "mobilenet/block_1_expand_BN_1/moments/mean (Mean)"
    operations = (DEPTHWISE, numbered, "net/dense_1/MatMul", "adam/Sqrt")
    found = [page.evaluate("layerAndBlock", one) for one in operations]
    assert found == [["block6a_dwconv_1", "block6a"], ["block_1_expand_BN_1", "block_1"], ["dense_1", ""], ["", ""]]


def test_narrow_bars_have_the_name_of_their_layer_or_block_over_them(opened: Opened, tmp_path: Path) -> None:
    step = tuple(TimelineWork(n, 9.9, "device", "device") for n in (0, 10, 20, 30))
    layers = ((1, "conv2_a", 40), (5, "conv2_b", 40), (21, "b3_x", 50), (27, "b3_y", 5), (28, "b3_z", 5))
    bars = [(at + n / 10, f"net/{layer}/Conv2D") for at, layer, count in layers for n in range(count)]
    bars += [(26.0, "adam/Sub"), *((35 + n / 10, "net/dense_1/Conv2D") for n in range(5))]
    work = tuple(TimelineWork(at, 0.09, "device", name) for at, name in sorted(bars))
    path = tmp_path / "report.html"
    timeline = drawn(1, 40.0, (("step", step), ("operations", work)))
    path.write_text(html.render(replace(full(), timeline=timeline)), "utf-8")
    page = opened(path, script="measure.keepTexts()")
    until(page, "window.written.size > 2")
    written = [text.rpartition(" ")[0] for text in page.evaluate("[...window.written]")]
    assert sorted(written) == ["b3", "b3_x", "conv2_a", "conv2_b", "device"]


@cases(*product(("run", "full"), (390, 1280)))
def test_on_a_phone_the_changes_come_after_the_first_bar_and_its_legend(
    kind: str, width: int, opened: Opened
) -> None:
    bar, legend, changes, step = opened(kind, width, 844, drawn=False).evaluate("measure.first()")
    assert bar <= legend < min(changes, bar + 20)
    assert (changes < step) is (width == 390 and kind == "run")


@cases((1280, "light"), (390, "dark"))
def test_the_page_of_a_history_draws_its_charts(width: int, scheme: Scheme, opened: Opened, tmp_path: Path) -> None:
    path = tmp_path / "history.html"
    path.write_text(history_page(regressed()), "utf-8")
    page = opened(path, width, color_scheme=scheme)
    assert page.locator(".chart .main-svg").count() >= 3
    assert page.evaluate("measure.fits()")


GALLERY = {path.name.partition(".")[0]: path for path in sorted(gallery.REPORTS.glob("*.json.gz"))}


@each(*GALLERY)
def test_the_changes_of_the_gallery_begin_on_the_first_screen_of_a_phone(
    name: str, opened: Opened, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(html.render(open_report(GALLERY[name], ())), "utf-8")
    page = opened(path, 390, 844)
    bar, legend, changes, _ = page.evaluate("measure.first()")
    assert bar <= legend < changes < 560
    names = page.locator(".run-bar + .legend li:visible").all_inner_texts()
    assert len(names) > 4
    assert all(re.fullmatch(r"[a-z ]+ \d+ %", name) for name in names)
    assert page.evaluate("measure.fits()")


def test_the_keyboard_walks_through_the_run(opened: Opened) -> None:
    page = opened("run")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    bar = page.get_by_role("slider")
    bar.focus()
    expect(page.locator(".run-bar output")).to_have_text("start: 0.4 s, from 0 to 0.4 s")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(bar).to_have_attribute("aria-valuetext", PREPARING)
    page.keyboard.press("End")
    page.keyboard.press("ArrowRight")  # stays there
    expect(bar).to_have_attribute("aria-valuetext", "end: 0.4 s, at 131 s")
    page.keyboard.press("Tab")
    expect(page.locator(".run-bar output")).to_contain_text("arrow keys")


def test_without_scripts_the_run_is_drawn_and_told(opened: Opened) -> None:
    page = opened("run", 390, drawn=False, java_script_enabled=False)
    drawn = page.get_by_role("img", name="The run: start 0.4 s, imports 5.7 s")
    assert drawn.locator("rect").count() == 3 + 4 * 10 + 1
    assert drawn.locator("title").nth(2).text_content() == PREPARING
    assert page.locator(".run-bar output").is_hidden()
    words = page.locator(".phases").inner_text()
    assert "pandas.DataFrame.iterrows" in words
    page.get_by_text("1 more", exact=True).click()
    assert page.get_by_text("numpy.concatenate").first.is_visible()


@each("run", "hostile-run")
def test_the_account_fits_a_phone(kind: str, opened: Opened) -> None:
    page = opened(kind, 390, 800)
    assert page.locator(".phases tbody tr").count() == 6
    expect(page.get_by_text("Less than 1 % of the run each: start 0.4 s, end 0.4 s.")).to_be_visible()
    assert page.evaluate("measure.tooWide()") == []


@each(390, 1280)
def test_trials_fit_the_window(width: int, opened: Opened) -> None:
    page = opened("tried", width, 800)
    assert page.locator(".trials > li .scale").count() == 11
    assert page.evaluate("measure.cutOff()") == []
    ticks = page.locator(".trials .scale").first.locator(".tick span")
    boxes = [sure(tick.bounding_box()) for tick in ticks.all()]
    ends = [(box["x"], box["x"] + box["width"]) for box in boxes]
    assert len(ends) > 2
    assert all(right < left for (_, right), (left, _) in pairwise(ends))  # labels do not overlap


def test_hostile_names_stay_text(opened: Opened) -> None:
    page = opened("hostile", 1280, 800)
    page.evaluate("measure.unfold()")
    page.locator("#picture-pipeline .drag").first.hover()
    page.locator("#picture-operations .slice").last.hover()
    page.wait_for_timeout(200)
    assert page.locator("img, iframe, object, main b b, main h1 b, svg a").count() == 0
    for picture, name in (("pipeline", "</script><img …"), ("operations", "<img src=x")):
        assert name in " ".join(page.locator(f"#picture-{picture} svg text").all_text_contents())
    assert HOSTILE in page.locator("main").inner_text()


def test_charts_follow_a_change_of_scheme(opened: Opened) -> None:
    page = opened("full", color_scheme="light")
    tick = page.locator("#picture-steps .xtick text").first
    light = tick.evaluate("tick => getComputedStyle(tick).fill")
    page.emulate_media(color_scheme="dark")
    expect(tick).not_to_have_css("fill", light)


def test_without_decompression_the_tables_open(opened: Opened) -> None:
    page = opened("full", drawn=False, script="delete window.DecompressionStream")
    page.wait_for_selector("figure details[open]")
    assert page.locator("figure table").first.is_visible()
    assert page.locator(".chart").first.is_hidden()


def test_on_paper_titles_stay_with_their_charts_and_bars_have_colours(opened: Opened) -> None:
    page = opened("tried", drawn=False)
    page.emulate_media(media="print")
    assert page.evaluate("measure.onPaper()") == ["avoid", "exact", "exact"]


def test_printing_unfolds_and_folds_again(opened: Opened) -> None:
    page, folded = opened("full"), "document.querySelectorAll('details:not([open])').length"
    before = page.evaluate(folded)
    for event, still in (("beforeprint", 0), ("afterprint", before)):
        page.evaluate(f"dispatchEvent(new Event('{event}'))")
        assert page.evaluate(folded) == still
    assert before > 0
