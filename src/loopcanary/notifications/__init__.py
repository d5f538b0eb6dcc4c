"""Notifications about new stalls and other issues: desktop and webhook.

The keeper sends them, or a program that judges its stalls itself (docs/how-to/notifications.md).
"""
