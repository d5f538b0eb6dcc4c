"""Readers of the files that lie beside a flight file: traced calls, notes of the start."""
