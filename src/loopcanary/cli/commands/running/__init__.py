"""Commands on one process that runs: one file each."""
