"""Two sets of runs against each other, as a document and as JSON."""
