"""From the evidence of a stall to its report, in the keeper and in a program that judges itself."""
