"""Games of pygame: their frames are turns."""
