"""One file a cause. `rules()` are asked in the order of the table of what is built in.

Narrow evidence goes first: a name lookup sleeps in `poll` and would pass as network I/O, so `dns` is
asked before. Whatever a module does while it is imported is the import's, since the fix is the same. To add a
rule, write its file and register it (`loopcanary.built_in`) where nothing before it explains its samples.
"""

from __future__ import annotations

from functools import cache

from loopcanary.diagnosis.causes.verdict import Finding, Rule
from loopcanary.diagnosis.samples.observation import Observation
from loopcanary.registry import CAUSES, REGISTRY


@cache
def rules() -> tuple[Rule, ...]:
    """All that are registered: third parties' first, as the last built-in one explains all that is left."""
    built_in: list[Rule] = []
    others: list[Rule] = []
    for one, rule in REGISTRY.loaded(CAUSES):
        if one.is_built_in:
            built_in.append(rule)
        else:
            others.append(_contained(one.name, rule))
    return (*others, *built_in)


def _contained(name: str, rule: Rule) -> Rule:
    """Asked until it raises for the first time."""
    is_on = True

    def ask(observation: Observation) -> Finding | None:
        nonlocal is_on
        try:
            return rule(observation) if is_on else None
        except Exception as error:  # noqa: BLE001 - a third party's; the stall is judged without it
            is_on = False
            REGISTRY.failed(f"cause {name}", error)
            return None

    return ask
