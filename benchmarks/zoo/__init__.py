"""The zoo: stalls with known truth, and what each stall detector says of them. See README.md."""
