"""What is wrong with a setting, and where it is written."""

from __future__ import annotations


class ConfigError(ValueError):
    """A setting that cannot be used. Its text is one line: place, what is wrong, next step.

    `key` is the setting, `value` what was found, `place` where (`keyword threshold`, `environment
    variable LOOPCANARY_THRESHOLD`, `/x/pyproject.toml: tool.loopcanary.threshold`), `next_step` what to
    write instead.
    """

    def __init__(self, *, key: str, value: object, place: str, problem: str, next_step: str) -> None:
        super().__init__(_one_line(f"{place}: {problem}; {next_step}"))
        self.key = key
        self.value = value
        self.place = place
        self.problem = problem
        self.next_step = next_step


class UnfitValueError(Exception):
    """A kind's verdict on a value, before anyone says where the value came from."""

    def __init__(self, problem: str, next_step: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.next_step = next_step


_SHOWN_CHARACTERS = 80


def shown(value: object) -> str:
    """The value as an error quotes it: on one line, and short."""
    try:
        text = _one_line(repr(value))
    except Exception:  # noqa: BLE001 - whatever it is, it must not replace our own error
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 3] + "..."


def _one_line(text: str) -> str:
    return " ".join(text.split())
