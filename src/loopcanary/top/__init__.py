"""`loopcanary top`: watched processes live.

past      readings of the last seconds, and the figures of what lies between two of them
rows      from readings to rows: a pure function
choosing  order and filter
columns   what a row shows, and which columns fit
as_text, as_json   rows for scripts
app, table, pages  the screen, the only modules that need Textual
"""
