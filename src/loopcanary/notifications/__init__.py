"""Notifications about new stalls, sent from outside the watched program: desktop and webhook.

None of this runs in a watched program: `loopcanary notify` follows stores, as `ui` does. A program whose
settings ask for notifications has that command started beside it, once a store (docs/notifications.md).
"""
