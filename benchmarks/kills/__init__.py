"""Watched programs that are killed at any moment: what the report has of them, and what it should have."""
