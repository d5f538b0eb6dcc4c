"""A log-linear histogram: any number of durations in a bounded place, quantiles at most 1/16 too large."""

from __future__ import annotations

_PARTS = 16
_PART_BITS = 4
BUCKETS = 64 * _PARTS


def bucket_of(ns: int) -> int:
    """The bucket of a duration: linear below 16 ns, then sixteen to each power of two."""
    if ns < _PARTS:
        return max(ns, 0)
    octave = ns.bit_length() - _PART_BITS - 1
    return min((octave << _PART_BITS) + (ns >> octave), BUCKETS - 1)


def upper_ns(bucket: int) -> int:
    """The longest duration in a bucket."""
    if bucket < 2 * _PARTS:
        return bucket
    octave = (bucket >> _PART_BITS) - 1
    return (((bucket & (_PARTS - 1)) + _PARTS + 1) << octave) - 1


def quantile_ns(counts: dict[int, int], share: float) -> int:
    """The duration that at least this share of all is not longer than; 0 of none."""
    rest = max(1, -(-sum(counts.values()) * share // 1)) if counts else 0
    for bucket in sorted(counts):
        rest -= counts[bucket]
        if rest <= 0:
            return upper_ns(bucket)
    return 0
