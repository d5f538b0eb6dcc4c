"""Durations and sizes as people write them."""

from __future__ import annotations

_DURATION_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60 * 1_000_000_000,
    "min": 60 * 1_000_000_000,
    "h": 3_600 * 1_000_000_000,
    "d": 86_400 * 1_000_000_000,
}
_SIZE_BYTES = {
    "": 1,
    "b": 1,
    "kb": 1_000,
    "mb": 1_000_000,
    "gb": 1_000_000_000,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}


def parse_duration_ns(text: str) -> int:
    """Nanoseconds of "100ms", "2s", "1.5h". Raises ValueError, which says what is wrong and what to write."""
    amount = _amount(text, _DURATION_NS)
    if amount is None:
        raise ValueError(f'{text!r} is not a duration: write a number and a unit, such as "100ms" or "2s"')
    return amount


def parse_size_bytes(text: str) -> int:
    """Bytes of "500MB", "1GiB", "4096". Raises ValueError, which says what is wrong and what to write."""
    amount = _amount(text, _SIZE_BYTES)
    if amount is None:
        raise ValueError(f'{text!r} is not a size: write a number and a unit, such as "500MB" or "1GiB"')
    return amount


def _amount(text: str, units: dict[str, int]) -> int | None:
    """The amount in a text of a number and its unit; None if the text is not one. `re` would take 3 ms of
    each watched start."""
    text = text.strip()
    unit = text.lstrip("0123456789.")
    number = text[: len(text) - len(unit)]
    whole, dot, fraction = number.partition(".")
    factor = units.get(unit.lstrip().lower())
    is_number = whole.isdigit() and (fraction.isdigit() or not dot)
    return _times(number, factor) if is_number and factor is not None else None


def _times(number: str, factor: int) -> int:
    """The exact product to the nearest whole one, halves to the even one. Whole numbers: `decimal` would be
    half a megabyte in every watched process."""
    whole, _, fraction = number.partition(".")
    parts: int = 10 ** len(fraction)
    product, rest = divmod(int(whole + fraction) * factor, parts)
    return product + (2 * rest > parts or (2 * rest == parts and product % 2 == 1))


def format_duration(ns: int) -> str:
    """A duration for people, three significant digits: 870 us, 41.2 ms, 1.37 s, 2 m 5 s."""
    if ns < 0:
        return "-" + format_duration(-ns)
    for limit, unit, factor in (
        (1_000, "ns", 1),
        (999_500, "us", 1_000),
        (999_500_000, "ms", 1_000_000),
        (99_950_000_000, "s", 1_000_000_000),
    ):
        if ns < limit:
            value = ns / factor
            digits = 0 if value >= 99.95 or factor == 1 else 1 if value >= 9.995 else 2
            return f"{value:.{digits}f} {unit}"
    seconds = round(ns / 1_000_000_000)
    if seconds < 3_600:
        return f"{seconds // 60} m {seconds % 60} s"
    return f"{seconds // 3_600} h {seconds % 3_600 // 60} m"


def format_length(ns: int) -> str:
    """The duration as by format_duration; empty for 0."""
    return format_duration(ns) if ns else ""


def format_size(size: int) -> str:
    """A number of bytes for people: 870 B, 41.2 MiB, 1.37 GiB."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1_000:
            break
        value, unit = value / 1_024, larger
    if unit == "B":
        return f"{size} B"
    return f"{value:.{0 if value >= 99.95 else 1 if value >= 9.995 else 2}f} {unit}"


def format_number(number: float) -> str:
    """A number for people, three significant digits and all before the point: 0.26, 41.2, 23,456."""
    return f"{number:,.0f}" if abs(number) >= 99.95 else f"{number:.3g}"
