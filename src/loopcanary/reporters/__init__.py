"""Reporters: what tells people about stalls while the program runs."""
