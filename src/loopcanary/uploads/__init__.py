"""Sending bundles by HTTP: small ones, each acknowledged before the next, so that all can be resumed.

    address    where they are sent to, and what may be shown of that
    retrying   when it is tried again, and when it is given up
    client     one request
    journal    what has been acknowledged, and what is on its way
    sending    one upload, from choosing to forgetting

One bundle is the unit of resuming: plain HTTP servers have no common way to go on inside a request.
"""

from __future__ import annotations

from loopcanary.uploads.address import UploadTarget, headers_of
from loopcanary.uploads.errors import UploadError
from loopcanary.uploads.journal import Journal
from loopcanary.uploads.sending import Progress, Upload

__all__ = ["Journal", "Progress", "Upload", "UploadError", "UploadTarget", "headers_of"]
