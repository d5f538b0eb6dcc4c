"""Locks that threads acquire in opposite orders."""
