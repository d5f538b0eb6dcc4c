"""Stored stalls as text, JSON (contract, docs/report-schema.md) and Markdown."""
