"""A process seen from outside, as a document and as JSON."""
