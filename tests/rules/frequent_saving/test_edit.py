"""longer-interval: the number of steps between two saves grows where nothing else reads it."""

import pytest

from tests.edits.editing_at import edited_at
from tfdoctor.edits.splice import Declined

LOOP = """EVERY = 5
for step, batch in enumerate(data):
    train(batch)
    if step % EVERY == 0:
        manager.save()
"""

CLASS = """class Trainer:
    def __init__(self, folder, every):
        self.folder, self.n = folder, 0
        self.every = every

    def train(self, data):
        for batch in data:
            self.n += 1
            if not int(self.n) % self.every:
                manager.save()

Trainer("out", every=2).train(data)
"""

EXAMPLE = "# 20 times as far apart as now\nmanager = ..."


def test_a_constant_grows() -> None:
    new = edited_at("longer-interval", LOOP, "manager.save", EXAMPLE)
    assert new == LOOP.replace("EVERY = 5", "EVERY = 100")


def test_a_number_grows() -> None:
    text = LOOP.replace("% EVERY", "% 7")
    assert edited_at("longer-interval", text, "manager.save", EXAMPLE) == text.replace("7", "140")


@pytest.mark.parametrize(("rest", "moved"), [("6", "139"), ("2", "135"), ("0", "0")])
def test_the_last_save_of_a_run_stays_late(rest: str, moved: str) -> None:
    text = LOOP.replace("% EVERY == 0", f"% 7 == {rest}")
    assert edited_at("longer-interval", text, "manager.save", EXAMPLE) == text.replace(
        f"% 7 == {rest}", f"% 140 == {moved}"
    )


def test_an_argument_grows() -> None:
    new = edited_at("longer-interval", CLASS, "manager.save", EXAMPLE)
    assert new == CLASS.replace("every=2", "every=40")


@pytest.mark.parametrize(
    "text",
    [
        LOOP + "print(EVERY)\n",
        LOOP.replace("EVERY = 5", "EVERY = args.every"),
        LOOP.replace("if step % EVERY == 0:", "if step % EVERY > 0:"),
        LOOP.replace("    if step % EVERY == 0:\n        manager", "    manager"),
        LOOP + "    else:\n        pass\n",
        CLASS + "Trainer('b', every=3)\n",
        CLASS + "print(trainer.every)\n",
        CLASS.replace("every=2", "**given"),
        CLASS.replace(", every=2", "").replace("every):", "every=2):"),
        CLASS.replace("self.every = every", "self.every = every if every else 1"),
        CLASS.replace("self.every = every", "self.every = every; print(every)"),
    ],
)
def test_an_interval_that_is_used_otherwise_declines(text: str) -> None:
    with pytest.raises(Declined):
        edited_at("longer-interval", text, "manager.save", EXAMPLE)
