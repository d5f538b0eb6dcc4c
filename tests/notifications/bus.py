"""A desktop's notification service on a session bus of its own: prints what it is asked to show, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys

from dbus_fast import Variant
from dbus_fast.aio import MessageBus
from dbus_fast.constants import MessageType, RequestNameReply
from dbus_fast.message import Message

NAME, PATH = "org.freedesktop.Notifications", "/org/freedesktop/Notifications"
INTROSPECTION = """
<node><interface name="org.freedesktop.Notifications">
  <method name="Notify">
    <arg direction="in" type="s"/><arg direction="in" type="u"/><arg direction="in" type="s"/>
    <arg direction="in" type="s"/><arg direction="in" type="s"/><arg direction="in" type="as"/>
    <arg direction="in" type="a{sv}" name="hints"/><arg direction="in" type="i"/>
    <arg direction="out" type="u"/>
  </method>
  <method name="GetServerInformation">
    <arg direction="out" type="s"/><arg direction="out" type="s"/>
    <arg direction="out" type="s"/><arg direction="out" type="s"/>
  </method>
  <method name="GetCapabilities"><arg direction="out" type="as"/></method>
  <signal name="NotificationClosed"><arg type="u"/><arg type="u"/></signal>
  <signal name="ActionInvoked"><arg type="u"/><arg type="s"/></signal>
</interface></node>
"""


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def answer(message: Message) -> Message | None:
    if message.message_type is not MessageType.METHOD_CALL or message.path != PATH:
        return None
    if message.member == "Introspect":
        return Message.new_method_return(message, "s", [INTROSPECTION])
    if message.member == "GetCapabilities":
        return Message.new_method_return(message, "as", [["body", "body-markup"]])
    if message.member == "GetServerInformation":
        return Message.new_method_return(message, "ssss", ["tests", "loopcanary", "1", "1.2"])
    if message.member == "Notify":
        app, _, _, title, body, _, hints, _ = message.body
        plain = {key: value.value for key, value in hints.items() if isinstance(value, Variant)}
        say(json.dumps({"app": app, "title": title, "body": body, "hints": plain}))
        return Message.new_method_return(message, "u", [1])
    return None


async def main() -> None:
    bus = await MessageBus().connect()
    bus.add_message_handler(answer)
    assert await bus.request_name(NAME) is RequestNameReply.PRIMARY_OWNER
    say("ready")
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until who started it is done
    bus.disconnect()


asyncio.run(main())
