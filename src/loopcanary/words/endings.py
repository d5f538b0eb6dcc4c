"""What a hang is, and what ended a process in it, in words. One line, printable."""

from __future__ import annotations

from loopcanary.model.session import KilledBy
from loopcanary.model.waiting import StateWord
from loopcanary.words.text import printable

_NAME_MAX = 100
_WORDS = {
    StateWord.STOPPED: "the thread was stopped, or the machine was frozen",
    StateWord.STARVED: "the thread was ready, and got no CPU",
    StateWord.DEADLOCKED: "no thread can release what it waits for",
    StateWord.PEER_DEAD: "the peer does not answer",
    StateWord.HUNG: "the thread is in one line, and does not get on",
    StateWord.SLOW: "the thread gets on, and takes long",
}


def state_word_words(word: StateWord) -> str:
    """`deadlocked: the thread waits for a lock that it holds itself`."""
    return f"{word.value}: {_WORDS[word]}"


def killed_by_words(killed: KilledBy | None) -> str:
    """`SIGABRT from gunicorn (pid 12, uid 1000); gunicorn arbiter: worker timeout 30 s`; what is not known is
    left out; empty where nothing is."""
    if killed is None:
        return ""
    who = killed.signal or ("a signal" if killed.pid is not None else "")
    if killed.pid is not None:
        who += f" from {_sender(killed.pid, killed.uid, killed.command)}"
    return printable("; ".join(filter(None, (who, killed.reason))), 3 * _NAME_MAX)


def _sender(pid: int, uid: int | None, command: str | None) -> str:
    if pid == 0:
        return "outside the container"
    about = f"pid {pid}" + ("" if uid is None else f", uid {uid}")
    return f"{printable(command, _NAME_MAX)} ({about})" if command else about
