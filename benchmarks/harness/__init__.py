"""What the benchmarks share: child processes that are asked in turns, and the table they fill."""
