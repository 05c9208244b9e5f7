"""Begins a rule: writes its page, its module and its test, each ready to be filled in.

make rule NAME=wide-rows TOPIC=input
"""

import argparse
from pathlib import Path

from scripts import new_module
from scripts.new_module import ROOT
from tfdoctor import __version__
from tfdoctor.diagnosis.rule import Topic

PAGE = """\
# TODO: state the fault in at most nine words

## What it checks

TODO: what is measured, in the reader's words.

## Why it matters

TODO: what it costs, and why.

## How to fix

TODO: what to change, in which order.

## Holds for

TODO: versions of TensorFlow, and hardware.

## Sources

- [TODO: title](https://www.tensorflow.org/guide)

## Limits

| limit | default | what it limits |
|---|---|---|
| `share` | 0.05 | Smallest share of the step; TODO: why this much, and its source |

## Since

{since}

## By hand

TODO: a clause that says what is in the way of an edit

## Code

```python change
# TODO: the change, as code
```
"""

RULE = '''\
from tfdoctor.families.kit import *

__doc__, CODE = page(__file__)

PRECONDITIONS = (timed_steps,)  # TODO: what is asked first, see preconditions.py; or none


class Limits(RuleLimits):
    share: float = share_limit(0.05)


def check(breakdown: Breakdown, limits: Limits = Limits()) -> Verdict:
    """TODO: name the facts you need in the signature; they arrive by type."""
    # TODO: compute what you state; this example checks the copies to the device
    time, step = breakdown["transfer"], breakdown.step_ms
    evidence = (Measure.share("TODO: what was measured", time / step, limits.share),)
    if time < limits.share * step:
        return Healthy(summary=f"TODO: it takes {time:.3g} ms per step", evidence=evidence)
    return Finding(
        summary=f"TODO: it takes {time:.3g} of the step's {step:.4g} ms",
        evidence=evidence,
        remedies=(Remedy("TODO: what to change", CODE["change"]),),
        effects=(Effect(Stage.TRANSFER, scales=0.0, of=ms(time)),),
    )
'''

TEST = '''\
"""{name}: the examples of its page, and both sides of each threshold."""

from tests.rules.kit import *
from tfdoctor.rules.{topic}.{module} import Limits, check


def example(transfer_ms: float = 10.0, device_ms: float = 20.0) -> Verdict:
    """TODO: the smallest case that has the fault; its parameters are what the tests change."""
    return check(Breakdown.of(transfer=transfer_ms, device=device_ms))


sick = example


def healthy() -> Verdict:
    """TODO: the same case without it."""
    return example(transfer_ms=0.1)


LEAST = Limits().share


def test_a_share_at_the_limit_is_found() -> None:
    assert as_finding(example(100 * LEAST, 100 * (1 - LEAST))).remedies


def test_a_share_below_the_limit_is_healthy() -> None:
    assert as_healthy(example(99 * LEAST, 100 - 99 * LEAST)).evidence
'''


def main() -> None:
    """Write the files, or say why not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", help="a noun that names the fault, such as wide-rows")
    parser.add_argument("--topic", choices=[str(topic) for topic in Topic], required=True)
    wanted = parser.parse_args()
    new_module.check_name(wanted.name, "wide-rows")
    new_module.write(files(wanted.name, Topic(wanted.topic)))


def files(name: str, topic: Topic) -> dict[Path, str]:
    """Return the texts of a new rule's page, module and test."""
    module, tests = name.replace("-", "_"), ROOT / "tests" / "rules"
    rules = ROOT / "src" / "tfdoctor" / "rules" / topic
    return {
        rules / f"{module}.md": PAGE.format(since=__version__),
        rules / f"{module}.py": RULE,
        tests / f"test_{module}.py": TEST.format(name=name, topic=topic, module=module),
    }


if __name__ == "__main__":
    main()
