"""The way of old, where there can be no keeper: a thread of the program takes, judges, stores and reports."""
