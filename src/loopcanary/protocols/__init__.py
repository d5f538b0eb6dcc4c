"""The seams between the parts. Every part on the rim implements one of these; assembly wires them."""
