"""The command ``serve``: where it listens, how it ends, what it starts, what a viewer gets."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from codex_multi_role.extensions.pages.serve.starting import NewRun, RunNotStarted, RunStarter
from codex_multi_role.lifecycle.stopping import stop_run
from codex_multi_role.run_folder import RunFolder
from codex_multi_role.run_folder.owner import is_alive, read_owner
from tests.support.console import completed, console, environment
from tests.support.processes import wait_for
from tests.support.recorded_runs import make_run, whole_run
from tests.support.serving import PLAYBOOK, QUICK, Served, project, served
from tests.support.teams import TeamFolder, read

pytestmark = pytest.mark.real

HALF_A_FORM = b"\r\n".join(
    [
        b"POST /start HTTP/1.1",
        b"Host: 127.0.0.1",
        b"Content-Type: application/x-www-form-urlencoded",
        b"Content-Length: 100",
        b"",
        b"flow=",
    ]
)


def test_it_ends_in_order_with_its_terminal(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        assert server.end(signal.SIGHUP) == (0, "")


def test_server_ends_at_once_with_many_viewers(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", "first")
    with served(tmp_path) as server:
        streams = [server.news("/runs/first/events") for _ in range(5)]
        for stream in streams:
            next(stream)
        with socket.create_connection(("127.0.0.1", server.client.base_url.port or 0), 60) as breaking_off:
            breaking_off.sendall(HALF_A_FORM)
        assert server.client.get("/").status_code == 200
        assert server.end(signal.SIGTERM) == (0, "")


DEAF = """
import sys
from pathlib import Path
from codex_multi_role.run_folder import Owner
owner = Owner(Path(sys.argv[1]))
owner.acquire()
print("there", flush=True)
sys.stdin.read()
"""


def test_server_ends_at_once_although_stopping_run_does_not(tmp_path: Path) -> None:
    """The run was asked to stop and does not react."""
    folder = make_run(tmp_path / "runs", "first", status="running", exit_code=None)
    command = [sys.executable, "-c", DEAF, str(folder.owner_path)]
    with served(tmp_path) as server, subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as deaf, ThreadPoolExecutor(1) as pool:  # fmt: skip
        watchdog = threading.Timer(60, deaf.kill)
        watchdog.start()
        assert deaf.stdout is not None
        assert deaf.stdout.readline() == "there\n"
        stopping = pool.submit(server.post, "/runs/first/stop", "/runs/first")
        wait_for(folder.path / "stop.json")
        ended = server.end(signal.SIGTERM)
        deaf.kill()
        watchdog.cancel()
        assert ended == (0, "")
        assert "was asked to stop and has not ended yet" in stopping.result().text


def test_returning_viewer_gets_every_event_exactly_once(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "runs", "first")
    with served(tmp_path) as server:
        number, everything = next(server.news("/runs/first/events"))
        assert number == len(whole_run())
        assert {part["name"] for part in everything["parts"]} == {"now", "controls", "overview", "path", "tree"}
        for again in (
            server.news("/runs/first/events", {"Last-Event-ID": "5"}),
            server.news("/runs/first/events?after=5"),
        ):
            _, rest = next(again)
            assert 0 < len(rest["lines"]) < len(everything["lines"])
            assert rest["lines"] == everything["lines"][-len(rest["lines"]) :]

        stream = server.news("/runs/first/events", {"Last-Event-ID": str(number)})
        assert next(stream)[1]["lines"] == []
        with folder.events_path.open("a") as events:
            events.write(json.dumps({"type": "warning", "at": whole_run()[-1].at, "message": "late"}) + "\n")
        number, news = next(stream)
        assert [line.partition("  ")[2] for line, *_ in news["lines"]] == ["warning: late"]
        assert [part["name"] for part in news["parts"]] == ["overview"]
        known = ",".join(part["version"] for part in everything["parts"] if part["name"] != "now")
        _, rest = next(server.news(f"/runs/first/events?after=0&known={known}"))
        assert {part["name"] for part in rest["parts"]} == {"now", "overview"}


def test_server_for_others_prints_its_token_and_asks_for_it(tmp_path: Path) -> None:
    with served(tmp_path, "--host", "0.0.0.0", CODEX_MULTI_ROLE_QUIET="true") as server:
        token = server.address.partition("?token=")[2]
        port = server.client.base_url.port
        assert len(token) > 40
        assert server.client.get(f"http://127.0.0.1:{port}/").status_code == 401
        assert server.client.get(f"http://127.0.0.1:{port}/?token={token}", follow_redirects=True).status_code == 200
        assert server.client.get(f"http://127.0.0.1:{port}/").status_code == 200
        code, said = server.end()
        assert (code, token in said) == (0, False)


def test_printed_address_accepts_any_characters_in_token(tmp_path: Path) -> None:
    with served(tmp_path, "--token", "a+token & #10 at 100% é/?") as server:
        assert server.client.get(server.address, follow_redirects=True).status_code == 200


def test_port_that_is_taken_is_wrong_usage(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = console("serve", "--port", str(port), folder=tmp_path)
    assert done.returncode == 2
    assert f"error: cannot listen on 127.0.0.1, port {port}: Address already in use" in done.stderr


def test_invalid_host_is_wrong_usage(tmp_path: Path) -> None:
    done = console("serve", "--host", "a..b", folder=tmp_path)
    assert (done.returncode, done.stderr.partition(":")[0]) == (2, "error")
    assert "cannot listen on a..b, port 8765" in done.stderr


WITHOUT = """
import sys
sys.modules[sys.argv.pop(1)] = None
from codex_multi_role.cli.main import main
sys.exit(main())
"""


def test_without_the_extra_one_line_says_how_to_get_it(tmp_path: Path) -> None:
    """Also if only a part of a part is missing, because another package brought the rest."""
    missing = "h11"
    done = completed([sys.executable, "-c", WITHOUT, missing, "serve"], tmp_path, environment(), seconds=60)
    assert done.returncode == 2
    assert done.stderr == (
        f"error: this command needs {missing}, which is not installed\n"
        "hint: Install it: pip install 'codex-multi-role[web]'\n"
    )


@pytest.fixture
def team(tmp_path: Path) -> TeamFolder:
    return project(tmp_path)


def start(server: Served, flow: str, **fields: str) -> RunFolder:
    """Start a run from its form."""
    form = f"/start?flow={flow}"
    answer = server.post("/start", form, flow=flow, playbook=PLAYBOOK, workspace="workspace", cycles="1", **fields)
    assert answer.status_code == 303, answer.text
    run_id = answer.headers["location"].partition("?")[0].rpartition("/")[2]
    return RunFolder(Path("runs") / run_id)


@pytest.mark.long
def test_run_continues_after_server_that_started_it_ends(team: TeamFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only here a server ends before a run that it started."""
    monkeypatch.chdir(team.folder)
    with served(team.folder, CODEX_MULTI_ROLE_TOKEN="known-to-the-server-only", **QUICK) as server:
        assert server.client.get("/").status_code == 401
        server.client.get(server.address.replace(str(server.client.base_url), "/"), follow_redirects=True)
        run = start(server, "stall")
        process = psutil.Process(read_owner(run)["pid"])
        assert server.end(signal.SIGTERM)[0] == 0
    try:
        assert is_alive(run)
        assert "CODEX_MULTI_ROLE_TOKEN" not in process.environ()
        stop_run(run)
    finally:
        if process.is_running():
            process.kill()
    assert read(run.record_path)["status"] == "interrupted"
    assert (run.path / "output.log").exists()
    assert (team.runs / ".gitignore").read_text() == "*\n"


@pytest.mark.sample("serve")
def test_answer_resumes_parked_run_and_is_accepted_once(team: TeamFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(team.folder)
    assert team.run(flow="ship", inputs={"place": "x"}).exit_code == 4
    run = RunFolder(team.runs / (team.runs / "latest").resolve().name)
    page = f"/runs/{run.run_id}"
    with served(team.folder, **QUICK) as server:
        assert server.client.get("/runs/latest").headers["location"] == page
        refused = server.post(f"{page}/answer", f"{page}/decide", question="ok.1", verdict="reject", comment=" ")
        assert (refused.status_code, "A rejection needs a comment" in refused.text) == (409, True)
        stream = server.news(f"{page}/events")
        done = server.post(
            f"{page}/answer", f"{page}/decide", question="ok.1", verdict="approve", comment="good", go_on="yes"
        )
        assert done.headers["location"] == f"{page}?done=approved"
        assert "succeeded" in (news["status"] for _, news in stream)
        again = server.client.post(f"{page}/answer", data={"form_secret": "x"})
        assert again.status_code == 403
    assert read(run.record_path)["outcome"] == "shipped"
    assert read(run.path / "reviews/ok.1.json")["answer"]["comment"] == "good"


def test_server_that_ends_waits_for_no_beginning(tmp_path: Path) -> None:
    starter, before = RunStarter(tmp_path / "runs", None, lambda: True), psutil.Process().children()
    with pytest.raises(RunNotStarted, match="has not started yet") as told:
        starter.start(NewRun("cycles"))
    (child,) = set(psutil.Process().children()) - set(before)
    assert f"Process {child.pid} is still running" in told.value.hint
    psutil.wait_procs([child], 60)
    (said,) = (tmp_path / "runs/.starting").iterdir()
    assert str(said) in told.value.hint
    assert "missing goal" in said.read_text()
    assert starter.reap() == 0


def test_long_goal_is_not_passed_as_process_argument(tmp_path: Path) -> None:
    """A goal may be longer than an argument and does not appear in the list of processes."""
    team = project(tmp_path)
    (tmp_path / "roles/flows/short.yaml").write_text("goal: {max_length: 9}\nsteps: [{ask: maker}]\n")
    starter = RunStarter(team.runs, tmp_path / "roles", lambda: False)
    with pytest.raises(RunNotStarted, match="the goal has 200000 characters, but 1 to 9 are required"):
        starter.start(NewRun("short", "long" * 50_000, {"playbook": PLAYBOOK}))
    assert "long" not in " ".join(NewRun("short", "long").arguments())
