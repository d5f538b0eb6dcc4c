"""Reads what other monitors write: one file a format, as registered in `loopcanary.importers`."""
