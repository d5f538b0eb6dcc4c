"""Values in words, and strings of the watched program made safe. Standard library only."""
