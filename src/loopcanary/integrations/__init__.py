"""Requests and jobs of web frameworks, their servers and task queues, reported to the engine.

`web`, `answers`, `wsgi_servers` and `tasks` have a function for each library, called when that is imported.
It finds the route and what calls the application; the engine gets a scene ("GET /orders/{id}") or a piece of
work with its own threshold. `asgi` and `wsgi` hold the middlewares for everything else.
"""
