"""A small shop, an aiohttp service, with the mistakes that stall event loops: each in its own module.

Nothing in here knows loopcanary. Run it as `loopcanary run -m shop`, or see demo.py beside this folder.
"""
