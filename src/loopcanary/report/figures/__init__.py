"""What stalls say together: rates, trends, gains, the health of loops, how long was watched."""
