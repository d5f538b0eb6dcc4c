"""Requests and jobs: what web frameworks, their servers and task queues do, told to the engine.

One file a library, in `web`, `servers` and `tasks`. Each says where the library has found the route, and
what calls the application; the engine hears a scene ("GET /orders/{id}") or a piece of work with a threshold
of its own. `asgi` and `wsgi` hold the middlewares for everything else.
"""
