from __future__ import annotations

import pytest
from starlette.testclient import TestClient
from tests.ui.conftest import HOST, PORT, TOKEN, client_of, let_in

from loopcanary.store import Store

SECRET = "orders.py"


@pytest.fixture
def stranger(filled: Store) -> TestClient:
    return client_of(filled)


def test_nothing_is_answered_without_the_token(stranger: TestClient):
    for path in (
        "/",
        "/groups",
        "/live",
        "/static/loopcanary.js",
        "/stall/export?id=s1-1&form=json",
        "/none",
    ):
        answer = stranger.get(path)
        assert answer.status_code == 403
        assert SECRET not in answer.text


def test_the_token_becomes_a_cookie_and_leaves_the_address(stranger: TestClient):
    answer = stranger.get("/groups", params={"cause": "lock", "token": TOKEN})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/groups?cause=lock"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert stranger.get("/groups").status_code == 200


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], TOKEN + "x", "\udcff", "ü" * 43])
def test_a_wrong_token_opens_nothing(stranger: TestClient, token: str):
    answer = stranger.get("/?token=" + token.encode("utf-8", "surrogatepass").hex() + token[:0])
    assert answer.status_code == 403
    assert (
        stranger.get(
            "/", headers={"cookie": f"loopcanary-{PORT}={token.encode('ascii', 'replace').decode()}"}
        ).status_code
        == 403
    )


def test_the_redirect_stays_on_this_host(stranger: TestClient):
    answer = stranger.get("//evil.example/x", params={"token": TOKEN})
    assert answer.headers.get("location", "/").startswith("/")
    assert not answer.headers.get("location", "/").startswith("//")


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", ""])
def test_another_name_for_this_machine_is_refused(client: TestClient, host: str):
    """DNS rebinding: the browser believes to be at evil.example, and comes to 127.0.0.1."""
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert SECRET not in answer.text


def test_localhost_is_a_name_of_ours(client: TestClient):
    cookie = {"cookie": f"loopcanary-{PORT}={TOKEN}"}
    assert client.get("/", headers={"host": f"localhost:{PORT}", **cookie}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_origins_get_nothing(client: TestClient, site: str):
    """`same-site` is another port of 127.0.0.1: cookies are sent there, too."""
    assert client.get("/", headers={"sec-fetch-site": site}).status_code == 403
    assert client.get("/", headers={"sec-fetch-site": "same-origin"}).status_code == 200
    assert client.get("/", headers={"sec-fetch-site": "none"}).status_code == 200


@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", f"http://127.0.0.1:{PORT + 1}", f"https://{HOST}"]
)
def test_only_our_own_pages_change_anything(client: TestClient, filled: Store, origin: str | None):
    headers = {} if origin is None else {"origin": origin}
    fingerprint = "1:f00d"
    for path, form in (
        ("/group/delete", {"f": fingerprint, "sure": "yes"}),
        ("/group/remark", {"f": fingerprint, "ignored": "1"}),
    ):
        assert client.post(path, data=form, headers=headers).status_code == 403
    assert filled.reader.issue("s1-1") is not None
    assert filled.reader.remarks() == {}


def test_every_answer_forbids_what_a_page_of_ours_never_does(client: TestClient, stranger: TestClient):
    answers = [
        client.get("/"),
        client.get("/static/loopcanary.js"),
        client.get("/none"),
        client.get("/stall/export", params={"id": "s1-1", "form": "json"}),
        stranger.get("/"),
        stranger.get("/", params={"token": TOKEN}),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "access-control-allow-origin" not in answer.headers


def test_cookies_of_other_ports_do_not_hide_ours(stranger: TestClient):
    """All ports of a host share cookies, and not all servers keep to the grammar."""
    ours = f"loopcanary-{PORT}={TOKEN}"
    for cookies in ('a={"b": 1}; ' + ours, f"a b=1;{ours}", f"{ours}; =;c=d,e f", f"x=y=z; {ours};"):
        assert stranger.get("/", headers={"cookie": cookies}).status_code == 200


def test_the_browsers_own_token_opens_one_time_only(filled: Store):
    """It is in the browser's command line, which every user of the machine can read."""
    first, second = client_of(filled, once="for-the-browser"), client_of(filled)
    assert first.get("/", params={"token": "for-the-browser"}).status_code == 303
    assert first.get("/").status_code == 200
    assert first.get("/", params={"token": "for-the-browser"}, headers={"cookie": ""}).status_code == 403
    assert second.get("/", params={"token": ""}).status_code == 403
    assert second.get("/", headers={"cookie": f"loopcanary-{PORT}=for-the-browser"}).status_code == 403


def test_cookies_that_are_none_are_no_way_in(stranger: TestClient):
    for cookie in ("", ";;;", "=", "a=b; loopcanary-1=x", f"loopcanary-{PORT}", "\x01=\x02"):
        assert stranger.get("/", headers={"cookie": cookie}).status_code == 403


def test_a_second_ui_has_a_cookie_of_its_own(filled: Store):
    known = let_in(client_of(filled))
    assert [cookie.name for cookie in known.cookies.jar] == [f"loopcanary-{PORT}"]
