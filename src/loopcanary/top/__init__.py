"""`loopcanary top`: watched processes live.

past      readings of the last seconds, and figures of the time between two of them
rows      from readings to rows, by a pure function
choosing  order and filter
columns   what a row shows, and which columns fit
about     everything about one row
printing  rows as text and JSON, for scripts
app, table, pages  the screen, the only modules that need Textual
"""
