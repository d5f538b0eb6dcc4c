from __future__ import annotations

import itertools
import os
import socket
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.notifications.receiving import answer, receiver

from loopcanary.engine.threads import PythonThread
from loopcanary.notifications import webhook
from loopcanary.notifications.notice import Notice
from loopcanary.notifications.outlet import DeliveryError, Outlet
from loopcanary.notifications.webhook import AddressError, Webhook, parse_address, read_address

NOTICE = Notice(title="hang of 1.40 s: <here>", cause="it slept")


def refused(url: str, is_asked: threading.Event | None = None) -> DeliveryError:
    """Cut once the receiver was asked, where there is an event for that."""
    webhook = Webhook(parse_address(url, "X"))
    asked = is_asked or threading.Event()
    cut = threading.Thread(target=lambda: (asked.wait(), webhook.cut()))
    cut.start()
    try:
        with pytest.raises(DeliveryError) as error:
            webhook.deliver(NOTICE)
    finally:
        asked.set()
        cut.join()
    assert "secret" not in str(error.value)
    assert "127.0.0.1" not in str(error.value)
    assert error.value.__cause__ is None
    return error.value


def test_a_notice_arrives_as_json():
    with receiver() as there:
        Webhook(parse_address(there.url, "X")).deliver(NOTICE)
        path, message = there.posts.get_nowait()
    assert path == "/services/T0/B0/very-secret"
    assert message["text"] == "`hang of 1.40 s: &lt;here&gt;`\n`it slept`"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status):
    with receiver() as other, receiver() as there:
        there.answers.put(answer(status, Location=other.url))
        error = refused(there.url)
        assert other.posts.empty()
    assert not error.again
    assert f"HTTP {status}" in str(error)


@pytest.mark.parametrize(
    ("status", "again"), [(400, False), (403, False), (404, False), (408, True), (429, True), (500, True)]
)
def test_what_is_refused_for_good_is_not_tried_again(status, again):
    with receiver() as there:
        there.answers.put(answer(status))
        assert refused(there.url).again is again


def test_a_receiver_that_never_answers_is_given_up():
    is_asked, is_over = threading.Event(), threading.Event()
    with receiver() as there:
        there.answers.put(lambda _: (is_asked.set(), is_over.wait()))
        try:
            assert refused(there.url, is_asked).again
        finally:
            is_over.set()


def test_a_receiver_that_answers_byte_by_byte_is_given_up():
    """Each byte comes within the time for one step; all of them never do."""
    is_asked, is_over = threading.Event(), threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        for number in itertools.count():
            handler.wfile.write(b"x")
            if number == 20:
                is_asked.set()
            if is_over.wait(0.01):
                break

    with receiver() as there:
        there.answers.put(drip)
        try:
            assert refused(there.url, is_asked).again
        finally:
            is_over.set()


def test_a_refused_connection_hides_the_address():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = refused(f"http://127.0.0.1:{taken.getsockname()[1]}/secret")
    assert str(error) == "the receiver refuses the connection"


def test_an_answer_that_is_no_http_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def speak() -> None:
            with server.accept()[0] as connection:
                connection.recv(65_536)
                connection.sendall(b"SMTP ready\r\n\r\n")

        thread = threading.Thread(target=speak)
        thread.start()
        assert refused(f"http://127.0.0.1:{server.getsockname()[1]}/secret").again
        thread.join()


def test_a_server_that_is_not_who_it_says_gets_nothing():
    """TLS is spoken, and the certificate checked: here there is none."""
    with receiver() as there:
        refused(there.url.replace("http://", "https://"))
        assert there.posts.empty()


def test_retry_after_is_seconds_or_a_date():
    assert webhook._seconds("7") == 7.0
    assert webhook._seconds("0") == 0.0
    assert webhook._seconds("99999999999999999999") == 3_600.0
    assert webhook._seconds(None) is None
    assert webhook._seconds("soon") is None
    assert webhook._seconds(formatdate(time.time() + 86_400, usegmt=True)) == 3_600.0
    assert webhook._seconds(formatdate(0, usegmt=True)) == 0.0


@given(st.text(max_size=40))
def test_any_retry_after_is_a_bounded_wait_or_none(text):
    wait_s = webhook._seconds(text)
    assert wait_s is None or 0.0 <= wait_s <= 3_600.0


def test_the_wait_that_a_receiver_asks_for_goes_with_the_error():
    with receiver() as there:
        there.answers.put(answer(429, Retry_After="17"))
        error = refused(there.url)
    assert (error.again, error.wait_s) == (True, 17.0)


def test_a_notice_sent_too_soon_is_sent_again():
    with receiver() as there:
        there.answers.put(answer(429, Retry_After="0"))
        there.answers.put(answer(503, Retry_After="0"))
        outlet = Outlet(Webhook(parse_address(there.url, "X")), PythonThread)
        outlet.send(NOTICE)
        while outlet.look(time.monotonic_ns()) is not None:
            outlet.rest(280)
        first, second, third = there.next(), there.next(), there.next()
        assert first == second == third
    assert (outlet.counts.sent, outlet.counts.lost, outlet.counts.problem) == (1, 0, None)


def test_the_proxy_of_the_environment_is_asked_for_a_tunnel(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://user:p%40ss@proxy.example:3128")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    connection = Webhook(parse_address("https://hooks.example/x", "X"))._connected()
    assert (connection.host, connection.port) == ("proxy.example", 3128)
    assert connection._tunnel_host == "hooks.example"
    assert connection._tunnel_headers["Proxy-Authorization"] == "Basic dXNlcjpwQHNz"
    here = Webhook(parse_address("https://localhost/x", "X"))._connected()
    assert here.host == "localhost"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no pipes with names")
def test_an_address_is_read_from_a_plain_file_or_a_link_to_one(tmp_path):
    (tmp_path / "secret").write_text("https://example.org/x\n")
    (tmp_path / "link").symlink_to("secret")
    os.mkfifo(tmp_path / "pipe")
    assert read_address({}, str(tmp_path / "link"))[0].host == "example.org"
    for name in ("pipe", "none", "."):
        with pytest.raises(AddressError, match="cannot be read"):
            read_address({}, str(tmp_path / name))
