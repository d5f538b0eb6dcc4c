"""Bundles: chosen stalls with the facts of their sessions in one zip file, for another store.

    layout     names, version, limits and the error of the format (docs/how-to/bundles.md)
    writing    from records to a file, streamed
    reading    from an untrusted file to records; the registered importer
    archive    the zip itself, refused unless it is a plain one
    redaction  the rules of what is replaced

Streams; holds a few records at a time.
"""
