"""Whose code a frame is, where it is, and what it calls."""
