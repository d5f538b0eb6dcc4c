"""Qt's event loops, and what its windows show."""
