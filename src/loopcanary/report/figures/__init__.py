"""Figures of many stalls together: rates, trends, gains, the health of loops, the watched time."""
