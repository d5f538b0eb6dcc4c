"""A notice as Slack's incoming webhooks take it: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks

`text` says everything by itself: Mattermost, and Discord's addresses that end in /slack, show it and leave
`blocks` alone. Names in it come from the watched program and its users: they are shown as they are, mention
nobody, link nothing and format nothing.
"""

from __future__ import annotations

import json
from typing import Any

from loopcanary.notifications.notice import Notice

_HEADER_MAX, _SECTION_MAX = 150, 3_000
"""Of Slack: https://docs.slack.dev/reference/block-kit/blocks"""
_APART = "\u200b"
"""Zero width: `@everyone` and `@channel` mention people in Discord and Mattermost, `@` and this does not."""
_MARKS = str.maketrans({"`": "'", "@": f"@{_APART}", "&": "&amp;", "<": "&lt;", ">": "&gt;"})
"""&, < and > are Slack's control characters; nothing ends a piece of code, in which nothing else counts."""


def body_of(notice: Notice) -> bytes:
    title, lines = _code(notice.title), [_code(line) for line in notice.lines]
    header = {"type": "plain_text", "text": notice.title[:_HEADER_MAX], "emoji": False}
    sections: list[dict[str, Any]] = [{"type": "header", "text": header}]
    if lines:
        text = "\n".join(lines)[:_SECTION_MAX]
        sections.append({"type": "section", "text": {"type": "mrkdwn", "text": text}})
    message = {"text": "\n".join([title, *lines]), "blocks": sections}
    return json.dumps(message, ensure_ascii=True).encode()


def _code(text: str) -> str:
    return f"`{text.translate(_MARKS)}`"
