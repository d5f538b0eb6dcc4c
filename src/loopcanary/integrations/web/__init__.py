"""Web frameworks: where each has found the route, and what calls the application."""
