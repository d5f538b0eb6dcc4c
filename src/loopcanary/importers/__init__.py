"""Reads what other monitors write: one file a format, each with a `protocols.imports.TextImporter`."""
