"""What a command has done in a running program: `asking` it, and what is done `inside`."""
