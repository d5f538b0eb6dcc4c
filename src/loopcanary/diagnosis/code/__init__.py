"""Whose code a frame is, where it is, and what it calls."""

from __future__ import annotations
