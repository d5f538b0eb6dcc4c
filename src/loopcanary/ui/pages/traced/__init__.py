"""Phases of starts and traced calls: as trees, by function, as a page of their own."""
