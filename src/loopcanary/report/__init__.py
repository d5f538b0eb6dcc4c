"""Stored stalls as text, JSON (contract, docs/internals/report-schema.md) and Markdown."""
