"""What is wrong with a setting, and where it is written."""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not loaded for it
if TYPE_CHECKING:
    from collections.abc import Collection


class ConfigError(ValueError):
    """A setting that cannot be used. Its text is one line: place, what is wrong, next step.

    `key` is the setting, `value` what was found, `place` where (`keyword threshold`, `environment
    variable LOOPCANARY_THRESHOLD`, `/x/pyproject.toml: tool.loopcanary.threshold`), `next_step` what to
    write instead.
    """

    def __init__(self, *, key: str, value: object, place: str, problem: str, next_step: str) -> None:
        super().__init__(" ".join(f"{place}: {problem}; {next_step}".split()))
        self.key = key
        self.value = value
        self.place = place
        self.problem = problem
        self.next_step = next_step


def unknown(key: str, value: object, place: str, known: Collection[str]) -> ConfigError:
    """A key that is no setting."""
    import difflib

    near = difflib.get_close_matches(key.replace("-", "_").lower(), known, n=1, cutoff=0.5)
    next_step = f"did you mean {near[0]}?" if near else "docs/configuration.md has the list of settings"
    return ConfigError(key=key, value=value, place=place, problem="no such setting", next_step=next_step)
