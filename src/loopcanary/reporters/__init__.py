"""Reporters: what shows people stalls while the program runs."""
