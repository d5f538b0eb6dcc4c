"""Task queues: their jobs."""
