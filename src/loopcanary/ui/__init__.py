"""`loopcanary ui`: what is stored, and what runs now, as pages for a browser on this machine.

sources     what pages read from: one store, or many as one
live        looks at the stores now and then, and says when something changed
pages       one module a page: a pure function from a source to a frozen value
drawing     numbers to shapes: sparklines, heat maps, timelines
templates   values to HTML, without logic of their own
document    the report, or traced calls, as one file, with what `bundling` puts into it
guard       who may ask at all: host, token, origin; the headers of every answer
app         addresses to pages
serving     the server, its port and its token
"""
