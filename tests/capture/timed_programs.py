"""Programs that time themselves, and the account of a run that agrees with them."""

from collections import Counter

from tests.kit import *

TEXT = {name: f"\n{text}" for name, text in text_parts(Path(__file__).with_name("programs.txt")).items()}
"""The programs that are recorded, and parts of them, by their names."""

BEGIN, END, TIMED_LOOPS = TEXT["begin"], TEXT["end"], TEXT["timed loops"] + TEXT["one line"]

TIMED = {
    "keras": f"import keras\n{TEXT['timed keras']}",
    "tf_keras": f"import tf_keras as keras\n{TEXT['timed keras']}",
    "loops": TIMED_LOOPS,
    "threads": TEXT["timed threads"],
    "session": TEXT["timed session"],
}


class Account:
    """What run.jsonl adds up to, and the times by the script's own timer, in which it waited so long for a core."""

    def __init__(self, folder: Path, timed: Path | None = None) -> None:
        self.lines = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
        self.timed: dict[str, float]
        self.waited: dict[str, float]
        self.timed, self.waited = json.loads(timed.read_text()) if timed else ({}, {})
        self.calls: dict[int, Any] = {line["id"]: line for line in self.of("call")}
        (self.end,) = self.of("end")

    def of(self, kind: str) -> list[Any]:
        return [line for line in self.lines if line["kind"] == kind]

    def within(self, number: int | None, kind: str) -> bool:
        if number is None:
            return False
        return self.calls[number]["call"] == kind or self.within(self.calls[number]["parent"], kind)

    def parts(self, what: str) -> Iterator[tuple[int, float]]:
        """Yield the calls of each bucket, and how much of something each of them has."""
        return ((int(number), one) for bucket in self.of("bucket") for number, one in bucket[what].items())

    def seconds(self, kind: str) -> float:
        """Return the s in calls of a kind and in all that is within them."""
        return sum(ms / 1e3 for number, ms in self.parts("calls") if self.within(number, kind))

    def entered(self, *kinds: str) -> Any:
        """Return how often calls of a kind were entered; of several, each."""
        counts = Counter[str]()
        for number, count in self.parts("entered"):
            counts[self.calls[number]["call"]] += int(count)
        return counts[kinds[0]] if len(kinds) == 1 else {kind: counts[kind] for kind in kinds}

    def spans(self) -> Counter[str]:
        return Counter(self.calls[span["call"]]["call"] for span in self.of("span"))

    def steps(self, source: str = "", at: int = 0) -> list[Any]:
        """Return the steps of a source, and at a line."""
        steps = [step for bucket in self.of("bucket") for step in bucket["steps"]]
        return [step for step in steps if source in ("", step["source"]) and at in (0, step["at"][1])]

    def count(self, source: str) -> int:
        return sum(step["steps"] for step in self.steps(source))

    def took(self, source: str = "", at: int = 0) -> float:
        """Return the s of steps."""
        return float(sum(step["ms"] for step in self.steps(source, at))) / 1e3

    def agrees(self, found: float, name: str, calls: int = 1) -> None:
        """Agree with the script's timer within 3 % or 30 ms for a call, beside waits for a core."""
        assert found == pytest.approx(self.timed[name], rel=0.03, abs=0.03 * calls + self.waited[name])

    def is_whole(self) -> None:
        whole = self.end["end"] - self.lines[0]["began"]
        assert self.seconds("script") == pytest.approx(whole, rel=0.03, abs=0.03)
