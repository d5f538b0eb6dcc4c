"""`loopcanary ui`: what is stored, and what runs now, as pages for a browser on this machine.

sources     the stores that pages read: one, or many as one
live        looks at the stores once a second, and tells pages that listen what changed
pages       one module a page: a pure function from a source to a frozen value
drawing     numbers to shapes: sparklines, heat maps, timelines
templates   values to HTML, without logic of their own
document    the report, or traced calls, as one file with its styles and scripts
guard       checks host, token and origin; sets the headers of every answer
app         addresses to pages
serving     the server, its port and its token
"""
