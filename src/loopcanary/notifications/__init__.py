"""Notifications: what is told of new stalls outside the watched program, on the desktop and by webhook.

None of this runs in a watched program: `loopcanary notify` follows stores, as `ui` does. A program whose
settings ask for notifications has that command started beside it, once a store (docs/notifications.md).
"""
