"""Twisted's reactors."""
