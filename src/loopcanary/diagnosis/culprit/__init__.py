"""The frame that the user can change, and what it was doing."""
