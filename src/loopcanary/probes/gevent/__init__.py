"""gevent's hubs."""
