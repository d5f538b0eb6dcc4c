"""trio's runs."""
