"""What answers the probes of orchestrators."""
