"""every-hundred-steps: only what logs is guarded, and only where a step counts."""

import re

import pytest

from tests.edits.editing import edited
from tfdoctor.edits.splice import Declined

HEAD = "import numpy as np\nimport tensorflow as tf\n"


def loop(body: str, before: str = "", after: str = "", header: str = "for i, x in enumerate(ds):") -> str:
    lines = "\n".join(f"    {line}" for line in f"loss = step(x)\n{body}".split("\n"))
    return f"{HEAD}{before}{header}\n{lines}\n{after}"


def guarded(body: str, **parts: str) -> str:
    return edited("every-hundred-steps", loop(body, **parts), "# here")


MADE = [
    ("print(i, float(loss))  # here", {}),
    ("value = float(loss)  # here\nprint(value)", {}),
    ("log.append(loss.numpy())  # here", {"before": "log = []\n", "after": "print(len(log))\n"}),
    ("with writer.as_default():\n    tf.summary.scalar('loss', loss, step=i)  # here", {}),
    ("for k, v in enumerate(model.weights):\n    print(k, np.mean(v.numpy()))  # here", {}),
    ("print(\n    float(loss),  # here\n\n)", {}),
]


@pytest.mark.parametrize(("body", "parts"), MADE)
def test_what_only_logs_is_guarded(body: str, parts: dict[str, str]) -> None:
    expected = "\n".join(f"    {line}" if line else line for line in body.split("\n"))
    after = loop(f"if i % 100 == 0:\n{expected}", **parts)
    made = guarded(body, **parts)
    assert re.sub(r" +\n", "\n", made) == re.sub(r" +\n", "\n", after)


def test_statements_apart_get_their_own_conditions() -> None:
    made = guarded("value = float(loss)  # here\nother(x)\nprint(value)")
    assert made.count("if i % 100 == 0:\n        ") == 2
    assert "\n    other(x)\n" in made


@pytest.mark.parametrize(
    ("before", "test", "made"),
    [("EVERY = 1\n", "i % EVERY == 0", "EVERY = 100\n"), ("", "i % 5 == 0", "if i % 100 == 0:")],
)
def test_a_short_interval_becomes_longer(before: str, test: str, made: str) -> None:
    after = guarded(f"if {test}:\n    print(float(loss))  # here", before=before)
    assert made in after
    assert after.count("if i") == 1


TRAPS = [
    ("value = float(loss)  # here\nif value < 0.1:\n    break", {}, "does more than log"),
    ("value = float(loss)  # here\nx = step(value)", {}, "does more than log"),
    ("value = float(loss)  # here", {"after": "save(value)\n"}, "reads `value`"),
    ("print(step(x))  # here", {}, "does more than log"),
    ("print(next(it))  # here", {}, "does more than log"),
    ("metric.update_state(loss)  # here", {}, "does more than log"),
    ("total += float(loss)  # here", {"before": "total = 0.0\n"}, "does more than log"),
    ("model.rate = float(loss)  # here", {}, "does more than log"),
    ("table[i] = float(loss)  # here", {"before": "table = {}\n"}, "does more than log"),
    ("best = min(best, float(loss))  # here", {"before": "best = 1.0\n"}, "reads `best`"),
    ("log.append(float(loss))  # here", {"before": "log = []\n", "after": "stop(log)\n"}, "shorter"),
    ("log.append(float(loss))  # here\nif log[-1] < 1:\n    break", {"before": "log = []\n"}, "shorter"),
    ("print(np.random.rand())  # here", {}, "does more than log"),
    ("print(float(loss))  # here", {"header": "for x in ds:"}, "no number of the step"),
    ("print(float(loss))  # here", {"header": "for _ in range(9):"}, "no number of the step"),
    ("i = 3\nprint(float(loss))  # here", {}, "not only the number"),
    ("print(f'''\n{loss}''')  # here", {}, "several lines"),
    ("if i % 100 == 0:\n    print(float(loss))  # here", {}, "every 100 steps already"),
    ("if i % EVERY == 0:\n    print(i)  # here", {"before": "EVERY = 1\nf(EVERY)\n"}, "used elsewhere"),
    ("if i % 5 == 0:\n    save(model)  # here", {}, "does more than log"),
    ("a = 1; print(float(loss))  # here\nb = a", {}, "reads `b`|does more"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "parts", "why"), TRAPS)
def test_what_a_step_needs_stays(body: str, parts: dict[str, str], why: str) -> None:
    if "reads `b`" in why:  # what only feeds the log may go with it
        assert guarded(body, **parts).count("if i % 100") == 1
        return
    with pytest.raises(Declined, match=re.escape(why)):
        guarded(body, **parts)


def test_no_loop_declines() -> None:
    with pytest.raises(Declined, match="no for loop"):
        edited("every-hundred-steps", "print(1)  # here\n", "# here")
