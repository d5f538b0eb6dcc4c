"""One module a page: a pure function from a source to a frozen value."""
