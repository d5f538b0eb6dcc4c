"""Tk's loops, and what its windows show."""
