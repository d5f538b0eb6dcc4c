"""Exact calls of chosen functions: docs/methods.md."""
