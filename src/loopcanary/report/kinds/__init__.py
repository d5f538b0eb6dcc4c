"""What each kind of issue says that others have not: figures among its facts, parts after them."""
