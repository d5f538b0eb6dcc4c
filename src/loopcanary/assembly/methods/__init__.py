"""`loopcanary methods`: calls of a running program; the side of who asks, and what it has the program do."""
