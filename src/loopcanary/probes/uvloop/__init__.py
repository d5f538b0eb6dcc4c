"""uvloop's loops."""
