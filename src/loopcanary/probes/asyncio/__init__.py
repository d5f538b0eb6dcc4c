"""asyncio's loops."""
