"""Figures of frames, input and idle work."""
