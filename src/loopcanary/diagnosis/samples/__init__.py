"""The samples of a stall, weighed and placed, for the rules to look at."""
