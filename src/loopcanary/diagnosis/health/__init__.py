"""Figures of loops and of pools of threads, stalls or not."""

from __future__ import annotations
