"""Requests and jobs of web frameworks, their servers and task queues, reported to the engine.

One file a library, in `web`, `servers` and `tasks`, with a function `patch` that is called when the library
is imported. It finds the route and what calls the application; the engine gets a scene ("GET /orders/{id}")
or a piece of work with its own threshold. `asgi` and `wsgi` hold the middlewares for everything else.
"""
