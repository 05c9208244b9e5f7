"""Energy in every rendering, with money and CO2 where they were given, and nowhere without a counter."""

from tests.report.kit import *
from tfdoctor.report.formats import render
from tfdoctor.stored.report import read, write


def amount(joules: float) -> EnergyAmount:
    usd, gco2 = number(0.3 * joules / 3.6e6), number(360 * joules / 3.6e6)
    return EnergyAmount(joules=joules, usd=usd, gco2=gco2)


BOARDS = EnergyRow(
    source=EnergySource.GPU,
    devices=2,
    power_w=812.0,
    idle_w=140.0,
    busy=0.625,
    per_step=amount(42.0),
    idle_per_step=amount(2.7),
    per_epoch=amount(42_000.0),
    run=amount(7.2e6),
)
ACCOUNT = EnergyAccount(rows=(BOARDS,), measured_s=61.0, epoch_steps=1000, usd_per_kwh=0.3, gco2_per_kwh=360.0)
SAVING = EnergySaving(
    source=EnergySource.GPU, power_w=140.0, per_step=amount(3.6), run=amount(7200.0), bound=Bound.AT_MOST
)


def measured() -> Diagnosis:
    """The full diagnosis, whose first finding saves energy too."""
    full = diagnoses.full()
    first, *rest = full.results
    return replace(full, energy=ACCOUNT, results=(replace(first, energy=SAVING), *rest))


def words(text: str) -> str:
    """Return a text without markup."""
    plain = re.sub(r"<[^>]+>", " ", text.replace("<wbr>", "")).replace("\\", "").replace("\u200b", "")
    return " ".join(plain.split())


def test_the_page_shows_energy_and_money() -> None:
    page = render("html", measured())
    shown = words(page[page.index('<h2 id="energy">') :].partition("</section>")[0])
    assert "two GPU boards (NVML)" in shown
    assert "812 W" in shown
    assert "42 J ($0.00000350, 0.0042 g CO2)" in shown
    assert "at least 2.7 J" in shown
    assert "per epoch of 1,000 steps" in shown
    assert "2 kWh ($0.600, 720 g CO2)" in shown
    assert "at most 3.6 J" in words(page)
    assert 'href="#energy"' in page


def test_markdown_and_the_terminal_show_it() -> None:
    summary = words(terminal.render(measured(), width=100, color=False))
    assert "Energy: two GPU boards (NVML): 42 J" in summary
    assert "at most 2 Wh ($0.000600, 0.72 g CO2) of the run" in summary
    comment = render("md", measured()).replace("\\", "").replace("\u200b", "")
    assert "Energy: two GPU boards (NVML): 42 J" in comment
    assert "This saves at most 3.6 J" in comment
    assert "Energy: two GPU boards (NVML): 42 J" in words(render("llm", measured()))


def test_the_stored_report_keeps_it() -> None:
    rules = {result.rule.name: result.rule for result in measured().results}
    made = finished(measured())
    written = json.loads(json.dumps(write(made), allow_nan=False))
    assert written["energy"]["rows"][0]["per_step"]["j"] == 42.0
    assert written["results"][0]["energy"]["run"]["usd"] == 0.0006
    again = read(written, [*all_rules(), *rules.values()])
    assert again.energy == ACCOUNT
    assert again.results[0].energy == SAVING
    assert write(again) == write(made)


def test_without_a_counter_nothing_is_said_of_energy() -> None:
    full = diagnoses.full()
    assert not energy_brief(full)
    assert "energy" not in write(full)
    for name in ("html", "md", "llm"):
        assert "Energy" not in render(name, full).replace("energy", "")
    assert "Energy" not in terminal.render(full, width=100, color=False)


def test_without_prices_there_is_no_money() -> None:
    plain = replace(BOARDS, per_step=EnergyAmount(joules=42.0), run=EnergyAmount(joules=7.2e6))
    account = EnergyAccount(rows=(plain,), measured_s=61.0)
    assert (
        energy_brief(replace(diagnoses.full(), energy=account))
        == "two GPU boards (NVML): 42 J per step, 2 kWh in the run"
    )


@pytest.mark.parametrize(
    ("row", "device", "told"),
    [
        (replace(BOARDS, idle_w=None), DeviceKind.GPU, "not idle for long enough"),
        (replace(BOARDS, without=1), DeviceKind.GPU, "one GPU board of the run shows no counter"),
        (BOARDS, DeviceKind.CPU, "The steps did not run on these boards"),
        (BOARDS, None, "Whether the steps ran on these boards was not recorded"),
        (replace(BOARDS, source=EnergySource.CPU), DeviceKind.CPU, "RAPL counts all programs"),
    ],
)
def test_what_a_figure_is_not_stands_beside_it(row: EnergyRow, device: DeviceKind, told: str) -> None:
    assert told in " ".join(energy_notes(replace(ACCOUNT, rows=(row,)), device))


def test_one_line_tells_of_boards_that_the_steps_did_not_run_on() -> None:
    full = diagnoses.full()
    on_cpu = replace(full, energy=ACCOUNT, subject=replace(full.subject, device=DeviceKind.CPU))
    assert "two GPU boards (NVML), which the steps did not run on: 42 J" in energy_brief(on_cpu)


@pytest.mark.parametrize(
    ("joules", "text"),
    [(0.0, "0 J"), (0.0042, "0.0042 J"), (42.0, "42 J"), (1_800.0, "1.8 kJ"), (3_600.0, "1 Wh"),
     (7.2e6, "2 kWh"), (None, "unknown")],
)  # fmt: skip
def test_energy_is_written_in_joules_then_in_hours_of_a_watt(joules: float | None, text: str) -> None:
    assert energy(joules) == text
