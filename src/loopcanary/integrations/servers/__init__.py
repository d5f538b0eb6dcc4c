"""Servers of HTTP: when a request came, and the threads that answer it."""
