"""Texts as other monitors write them."""

from __future__ import annotations

import re

OLD_KEYS = {
    "qua": "qualifier",
    "api-level": "apilevel",
    "cpu-core": "cpuCore",
    "process": "processName",
    "time": "timecost",
    "thread-time": "threadtimecost",
    "time-start": "timestart",
    "time-end": "timeend",
    "cpu-busy": "cpubusy",
    "cpu-rate": "cpurate",
}
FRAMES = """\
android.database.sqlite.SQLiteConnection.nativeExecute(Native Method)
android.database.sqlite.SQLiteConnection.execute(SQLiteConnection.java:845)
com.example.shop.Orders$1.load(Orders.java:42)
com.example.shop.MainActivity.onClick(MainActivity.java:17)
android.os.Handler.dispatchMessage(Handler.java:95)
android.os.Looper.loop(Looper.java:148)"""


def block(
    *, ms: int = 1500, ran: int = 40, day: str = "03-07", at: str = "09:59:50", frames: str = FRAMES
) -> str:
    """A block log of BlockCanary 1.5, with CRLF as it is written."""
    text = f"""
**********************
2016-{day} 10:00:01(write log time)

qua = 1.2_beta
versionName = 1.2
versionCode = 12
imei = 866900000000001
uid = mary
network = wifi
model = Nexus 5
api-level = 23 6.0.1
cpu-core = 4
process = com.example.shop
freeMemory = 404360
totalMemory = 1901684
time = {ms}
thread-time = {ran}
time-start = {day} {at}.000
time-end = {day} {at}.900
cpu-busy = false
cpu-rate = {day} {at}.900 cpu:62% app:1% [user:31% system:20% ioWait:42% ]
{day} 08:00:00.000 cpu:8596% app:1% [user:31% system:20% ioWait:42% ]

stack = {day} {at}.800

{frames}

{day} {at}.950

{frames}


"""
    return text.replace("\n", "\r\n")


def old(text: str) -> str:
    """The same with the keys of 1.0 to 1.2."""
    for new, before in OLD_KEYS.items():
        text = re.sub(rf"(?m)^{new} =", f"{before} =", text)
    return text


def logcat(text: str, tag: str = "BlockCanary") -> str:
    """The same as lines of a logcat, with others between them."""
    lines = ["--------- beginning of main"]
    for line in text.splitlines():
        lines.append(f"03-07 10:00:01.123  1234  1250 I {tag}: {line}")
        lines.append("03-07 10:00:01.124  1234  1234 D Choreographer: Skipped 30 frames!")
    return "\n".join(lines)


WATCHDOG = """\
com.github.anrwatchdog.ANRError: Application Not Responding for at least 5000 ms.
Caused by: com.github.anrwatchdog.ANRError$$$_Thread: main (state = TIMED_WAITING)
\tat java.lang.Thread.sleep(Native Method)
\tat com.example.shop.MainActivity.Sleep(MainActivity.java:30)
\tat android.os.Looper.loop(Looper.java:148)
Caused by: com.github.anrwatchdog.ANRError$$$_Thread: worker (state = RUNNABLE)
\tat com.example.shop.Worker.run(Worker.java:3)
"""
