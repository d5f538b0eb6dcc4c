"""The kinds of issues beside the stall, and what all kinds have in common."""
