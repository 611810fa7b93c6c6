"""What a page of somebody else, a guessed token or a path out of the run's folder comes to."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote

import pytest
from starlette.routing import Route
from starlette.testclient import TestClient

from codex_multi_role.errors import UsageError
from codex_multi_role.extensions.pages.serve import guard, run_files
from codex_multi_role.extensions.pages.serve.access import Access
from codex_multi_role.extensions.pages.serve.forms import MOST_BYTES
from codex_multi_role.extensions.pages.serve.listing import RunList
from tests.support.recorded_runs import make_run
from tests.support.serving import HOST, client

TOKEN = "a-token-of-enough-characters"
FORM = {"content-type": "application/x-www-form-urlencoded"}
SECRETS = ("journal.sqlite", "journal.sqlite-wal", ".codex/planner/auth.json", ".snapshots/HEAD")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = make_run(tmp_path / "runs", "first")
    for name in SECRETS:
        (folder.path / name).parent.mkdir(parents=True, exist_ok=True)
        (folder.path / name).write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    return tmp_path / "runs"


@pytest.mark.parametrize("host", ["127.0.0.1:8765", "localhost:8765", "localhost", "[::1]:8765", "127.0.0.2"])
def test_server_of_this_machine_goes_by_its_names(runs: Path, host: str) -> None:
    assert client(runs, host=host).get("/").status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8765", "10.0.0.7", "localhost:x", "", "a@b"])
def test_no_other_site_can_point_its_name_at_it(runs: Path, host: str) -> None:
    visitor = client(runs)
    for path in ("/", "/runs/first", "/runs/first/events", "/static/live.js"):
        assert visitor.get(path, headers={"host": host}).status_code == 421


def test_public_server_accepts_only_addresses_and_own_names() -> None:
    """A server that other machines can reach accepts IP addresses, localhost and its own name as the host."""
    access = Access.to("0.0.0.0", None)
    assert access.serves("10.0.0.7:8765")
    assert access.serves("[fe80::1]:8765")
    assert access.serves("localhost")
    assert not access.serves("evil.example")
    assert Access.to("pages.example", TOKEN).serves("Pages.Example:80")


PROXY = "https://runs.example.com"


def test_behind_a_proxy_its_pages_are_ours_and_a_token_is_needed(runs: Path) -> None:
    access = Access.to("127.0.0.1", None, f"{PROXY}/")
    assert access.token is not None
    for host in ("runs.example.com", HOST):  # as the browser has it, or the proxy's own
        visitor = client(runs, access, host=host)
        assert visitor.get("/").status_code == 401
        cookie = visitor.get(f"/?token={access.token}").headers["set-cookie"]
        assert "Secure" in cookie
        sent = {"cookie": cookie.partition(";")[0], "origin": PROXY, "sec-fetch-site": "same-origin"}
        fields = {"form_secret": access.form_secret, "flow": "no such flow"}
        assert visitor.post("/start", data=fields, headers=sent).status_code == 404
        for origin in ("http://runs.example.com.evil.example", "https://evil.example", ""):
            assert visitor.post("/start", data=fields, headers={**sent, "origin": origin}).status_code == 403


@pytest.mark.parametrize("url", ["runs.example.com", "ftp://x", "https://", f"{PROXY}/runs", f"{PROXY}?a", "http://[x"])
def test_invalid_public_address_is_wrong_usage(url: str) -> None:
    with pytest.raises(UsageError, match="is invalid"):
        Access.to("127.0.0.1", None, url)


def posts(visitor: TestClient) -> list[str]:
    """Every address that takes a form, of the run ``first``."""
    routes = [each for each in visitor.app.app.routes if isinstance(each, Route)]  # type: ignore[attr-defined]
    return [each.path.replace("{run}", "first") for each in routes if "POST" in (each.methods or ())]


def test_no_form_is_taken_without_the_secret_of_this_server(runs: Path) -> None:
    visitor = client(runs)
    assert len(posts(visitor)) == 7
    for path in posts(visitor):
        assert visitor.post(path, data={"question": "ok.1"}).status_code == 403
        assert visitor.post(path, data={"form_secret": "guessed"}).status_code == 403
        assert visitor.post(path, json={"form_secret": "guessed"}).status_code == 400
        assert visitor.get(path).status_code in (200, 405)  # the form itself, or nothing


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"},
    ],
)
def test_no_other_site_can_send_a_form_even_with_the_secret(runs: Path, headers: dict[str, str]) -> None:
    access = Access("127.0.0.1")
    visitor = client(runs, access)
    for path in posts(visitor):
        assert visitor.post(path, data={"form_secret": access.form_secret}, headers=headers).status_code == 403


def test_other_sites_may_link_here_but_not_read_or_show_anything(runs: Path) -> None:
    visitor = client(runs)
    linked = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}
    assert visitor.get("/runs/first", headers=linked).status_code == 200
    for wanted in ("iframe", "empty", "image"):
        headers = {"sec-fetch-site": "cross-site", "sec-fetch-dest": wanted}
        assert visitor.get("/runs/first/events", headers=headers).status_code == 403
    answer = visitor.get("/runs/first")
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def test_requests_without_token_reveal_nothing(runs: Path) -> None:
    visitor = client(runs, Access("127.0.0.1", TOKEN))
    for path in ("/", "/start", "/runs/first", "/runs/first/events", "/runs/first/files/run.json", "/nowhere"):
        for query in ("", "?token=wrong", f"?token={TOKEN}x"):
            answer = visitor.get(path + query)
            assert answer.status_code == 401
            assert "Convert roman numerals" not in answer.text
            assert "set-cookie" not in answer.headers
    assert all(visitor.post(path, data={}).status_code == 401 for path in posts(visitor))
    assert all(visitor.post(f"{path}?token={TOKEN}", data={}).status_code == 401 for path in posts(visitor))


def test_token_is_passed_once_and_kept_out_of_url_and_cookie(runs: Path) -> None:
    visitor = client(runs, Access("127.0.0.1", TOKEN))
    answer = visitor.get(f"/runs/first?token={TOKEN}&done=approved")
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs/first?done=approved")
    cookie = answer.headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=lax" in cookie.lower()
    assert TOKEN not in cookie
    assert visitor.get("/runs/first").status_code == 200
    assert visitor.get(f"/?token={TOKEN}&q=it").headers["location"] == "/?q=it", "who is known already"
    assert visitor.get("/", headers={"cookie": "codex_multi_role_8765=wrong"}).status_code == 401
    assert client(runs, Access("127.0.0.1", TOKEN[::-1])).get("/", headers={"cookie": cookie}).status_code == 401


@pytest.mark.parametrize("path", ["//evil.example/", "/%5Cevil.example", "///evil.example", "/%0d%0aLocation:x"])
def test_way_on_from_a_token_never_leads_to_another_site(runs: Path, path: str) -> None:
    answer = client(runs, Access("127.0.0.1", TOKEN)).get(f"http://{HOST}{path}?token={TOKEN}")
    assert answer.status_code == 303
    assert not answer.headers["location"].startswith(("//", "/\\"))
    assert answer.headers["location"].startswith("/")


def test_public_server_requires_unguessable_token() -> None:
    """It generates a long random one by default and refuses a short one."""
    made = Access.to("0.0.0.0", None)
    assert made.token is not None
    assert len(made.token) > 40
    assert made.token != Access.to("0.0.0.0", None).token
    assert Access.to("localhost", None).token is None
    with pytest.raises(UsageError, match="16"):
        Access.to("0.0.0.0", "short")


@pytest.mark.parametrize("body", [b"x" * (MOST_BYTES + 1), b"a=1&" * 1000, b"\xff\xfe=1", b"form_secret=%zz&&&"])
def test_forms_are_bounded(runs: Path, body: bytes) -> None:
    assert client(runs).post("/start", content=body, headers=FORM).status_code in (400, 403, 413)


def test_form_for_the_token_leads_to_no_other_site_and_to_a_page(runs: Path) -> None:
    visitor = client(runs, Access("127.0.0.1", TOKEN))
    assert '<form class="card" method="get"' in visitor.get(f"http://{HOST}//evil.example/").text
    assert '<form class="card" action="/" method="get"' in visitor.post("/runs/first/stop").text


def test_page_that_fails_is_guarded_as_any_other(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunList, "page", lambda *_, **__: 1 / 0)
    answer = client(runs).get("/")
    assert (answer.status_code, "Internal error" in answer.text) == (500, True)
    assert answer.headers["content-security-policy"] == guard.POLICY
    assert answer.headers["x-frame-options"] == "DENY"


LEADING_OUT = [
    "../outside.txt",
    "..%2F..%2Foutside.txt",
    "%2e%2e/%2e%2e/outside.txt",
    "%2Fetc%2Fpasswd",
    "planner/../../../outside.txt",
    "link.txt",
    "links/passwd",
    "within/planner/auth.json",
    "run.json%00.txt",
    "fifo",
    "nowhere",
    *SECRETS,
]


@pytest.mark.parametrize("path", LEADING_OUT)
def test_only_files_of_the_run_are_handed_out(runs: Path, path: str) -> None:
    folder = runs / "first"
    (folder / "link.txt").symlink_to(runs.parent / "outside.txt")
    (folder / "links").symlink_to("/etc")
    (folder / "within").symlink_to(folder / ".codex")
    os.mkfifo(folder / "fifo")
    # a client of ours mends some of these before it sends them
    assert path == "fifo" or run_files.real_path(folder, unquote(path)) is None
    answer = client(runs).get(f"/runs/first/files/{path}")
    assert answer.status_code in (404, 421), answer.text
    assert "secret" not in answer.text.lower().replace("form_secret", "")


def test_file_comes_as_text_to_be_saved(runs: Path) -> None:
    (runs / "first/planner/turn_001/page.html").write_text("<script>alert(1)</script>")
    answer = client(runs).get("/runs/first/files/planner/turn_001/page.html")
    assert answer.text == "<script>alert(1)</script>"
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''page.html"
    assert answer.headers["x-content-type-options"] == "nosniff"
    listed = client(runs).get("/runs/first/files/").text
    assert "events.jsonl" in listed
    assert not [name for name in ("journal", ".codex", ".snapshots", "latest") if f">{name}" in listed]


def test_folder_with_odd_or_vanishing_names_is_listed(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that are not UTF-8 are left out. A file may be deleted while the folder is listed."""
    Path(os.fsdecode(bytes(runs / "first") + b"/no text \xff.txt")).touch()
    (runs / "first/gone.txt").touch()

    def is_shown(path: Path) -> bool:
        (runs / "first/gone.txt").unlink(missing_ok=True)
        return shown(path)

    shown = run_files.is_shown
    monkeypatch.setattr(run_files, "is_shown", is_shown)
    answer = client(runs).get("/runs/first/files/")
    assert (answer.status_code, ">events.jsonl<" in answer.text) == (200, True)
    assert "no text" not in answer.text


@pytest.mark.parametrize("number", ["9" * 5000, "x", "-1"])
def test_invalid_page_number_shows_nearest_page(runs: Path, number: str) -> None:
    assert "Convert roman numerals" in client(runs).get(f"/?page={number}").text


@pytest.mark.parametrize("at", ["yesterday", 7, {}, "0001-01-01T00:00:00+23:59"])
def test_invalid_start_time_hides_no_run(tmp_path: Path, at: object) -> None:
    visitor = client(make_run(tmp_path / "runs", "first", started_at=at).path.parent)
    assert all("Convert roman numerals" in visitor.get(path).text for path in ("/", "/runs/first"))


def test_report_is_a_page_that_can_reach_nothing_of_ours(runs: Path) -> None:
    assert client(runs).get("/runs/first/report").status_code == 404
    (runs / "first/report.html").write_text("<h1>It went well</h1>")
    answer = client(runs).get("/runs/first/report")
    assert answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy
    assert "default-src 'none'" in policy
    assert '<a href="/runs/first/report">Report</a>' in client(runs).get("/runs/first").text


HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m\"'>{{ 7*7 }}"


def test_what_a_model_wrote_is_text_wherever_it_is_shown(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first", goal=HOSTILE, reason=HOSTILE, workspace=HOSTILE, flow=HOSTILE, outcome=HOSTILE)
    visitor = client(tmp_path / "runs")
    for path in ("/", "/runs/first", f"/?q={HOSTILE[:20]}"):
        shown = visitor.get(path).text
        assert "<img" not in shown
        assert "&lt;img src=x" in shown
        assert not {"\u202e", "\x1b"} & set(shown)
        assert "{{ 7*7 }}" in shown


def test_done_message_cannot_be_forged_by_link(runs: Path) -> None:
    assert "Approved." in client(runs).get("/runs/first?done=approved").text
    assert "gotcha" not in client(runs).get("/runs/first?done=gotcha").text
