"""Tracers, wired to the engine of this process: figures and issues (`all`), and those that work in the program."""
