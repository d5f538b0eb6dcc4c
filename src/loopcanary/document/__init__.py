"""A neutral document of what is reported, and its printers. Standard library only.

`parts` has the blocks, `makers` short ways to make them. `layout` sets blocks into lines for terminals and
writes these; `markdown` and `html` write blocks; `wrapping.plain` writes one line. A printer knows no stall;
a maker knows no printer.
"""
