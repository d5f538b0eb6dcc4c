"""The keeper put together."""
