"""A home that begins with its databases is as good as an empty one, and whatever is wrong with them costs only time."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import pytest

from codex_multi_role.codex.locator import find_codex
from codex_multi_role.codex.warm_home import WarmHomes, user_store
from codex_multi_role.host.processes import Family
from tests.support.long_run import by_default
from tests.support.processes import largest_file
from tests.support.teams import TeamFolder, say

pytestmark = pytest.mark.real


def homes_with(store: Path) -> WarmHomes:
    return WarmHomes(find_codex(None, {}), store, Family())


def new_home(folder: Path, name: str = "home") -> Path:
    home = folder / name
    home.mkdir(parents=True)
    return home


def filled(store: Path, home: Path) -> Path:
    homes_with(store).fill(home)
    return home


def made_in(store: Path) -> list[Path]:
    """The databases there, once nobody is making any."""
    for _ in range(300):
        if not list(store.glob("making-*")):
            break
        threading.Event().wait(0.1)
    return sorted(store.glob("databases-*/*"))


def schema(database: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(database)) as connection:
        return sorted(connection.execute("SELECT name, sql FROM sqlite_master").fetchall())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with databases."""
    folder = tmp_path_factory.mktemp("runs")
    homes = homes_with(folder / "store")
    homes.fill(new_home(folder))
    with homes.made_meanwhile():
        assert made_in(folder / "store")
    return folder / "store"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the runs of the test look for databases: nothing is there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return user_store({"XDG_CACHE_HOME": str(tmp_path / "cache")})


@pytest.fixture
def team(tmp_path: Path, cache: Path) -> TeamFolder:
    return TeamFolder(tmp_path, {"one": {}}, {"one": [say("first"), say("second")]})


@pytest.fixture
def warm_team(team: TeamFolder, cache: Path, store: Path) -> TeamFolder:
    """A team whose runs find databases."""
    shutil.copytree(store, cache)
    return team


def test_only_empty_databases_are_kept(store: Path) -> None:
    names = {path.name.rpartition("_")[0] for path in made_in(store)}
    assert {path.suffix for path in made_in(store)} == {".sqlite"}
    assert "state" in names
    state = next(path for path in made_in(store) if path.name.startswith("state_"))
    with closing(sqlite3.connect(state)) as connection:
        assert connection.execute("SELECT count(*) FROM threads").fetchone() == (0,)


def test_home_gets_a_copy_once(store: Path, tmp_path: Path) -> None:
    home = filled(store, new_home(tmp_path))
    assert {path.name: path.read_bytes() for path in home.iterdir()} == {
        path.name: path.read_bytes() for path in made_in(store)
    }
    for path in home.iterdir():
        path.write_bytes(b"a thread's")
    homes_with(store).fill(home)
    assert {path.read_bytes() for path in home.iterdir()} == {b"a thread's"}
    assert list(tmp_path.iterdir()) == [home]


def test_half_made_copy_is_made_again(store: Path, tmp_path: Path) -> None:
    new_home(tmp_path, ".home.new").joinpath("state_5.sqlite").write_bytes(b"half")
    home = filled(store, new_home(tmp_path))
    assert len(list(home.iterdir())) == len(made_in(store))
    assert list(tmp_path.iterdir()) == [home]


def test_copy_that_fails_leaves_the_home_empty(store: Path, tmp_path: Path) -> None:
    with largest_file(40_000):
        home = filled(store, new_home(tmp_path))
    assert list(home.iterdir()) == []
    assert list(tmp_path.iterdir()) == [home]


def test_run_on_warm_homes_does_what_one_on_cold_homes_does(team: TeamFolder, cache: Path, store: Path) -> None:
    cold = team.run(run_id="cold")
    shutil.rmtree(cache, ignore_errors=True)
    shutil.copytree(store, cache)
    told = {event["type"] for event in team.events}
    warm = team.run(run_id="warm")
    assert (warm.outcome, warm.exit_code) == (cold.outcome, cold.exit_code) == ("cycles_used_up", 1)
    assert {event["type"] for event in team.events} == told
    for kept in sorted(store.glob("databases-*/*")):
        assert schema(warm.folder / ".codex" / "one" / kept.name) == schema(cold.folder / ".codex" / "one" / kept.name)


def test_thread_that_began_on_a_warm_home_is_resumed(warm_team: TeamFolder) -> None:
    assert warm_team.run().outcome == "cycles_used_up"
    before = {event["role"]: event["thread_id"] for event in warm_team.of_type("role_started")}
    assert warm_team.resume(cycles=2).outcome == "cycles_used_up"
    again = {event["role"]: event["thread_id"] for event in warm_team.of_type("role_started") if event["resumed"]}
    assert again == before
    assert [turn[:2] for turn in warm_team.turns()] == [("one", 2)]


def test_two_runs_that_begin_at_once_make_the_databases_together(tmp_path: Path) -> None:
    both = [homes_with(tmp_path / "store") for _ in range(2)]
    with ExitStack() as stack:
        for number, homes in enumerate(both):
            homes.fill(new_home(tmp_path, f"missed.{number}"))
            stack.enter_context(homes.made_meanwhile())
        kept = made_in(tmp_path / "store")
    assert len({path.parent for path in kept}) == 1
    assert len(list(filled(tmp_path / "store", new_home(tmp_path)).iterdir())) == len(kept)


@pytest.mark.parametrize("damage", by_default([None], [b"", b"no database at all", None]))
def test_run_on_damaged_databases_starts_cold(warm_team: TeamFolder, cache: Path, damage: bytes | None) -> None:
    for path in cache.glob("databases-*/*.sqlite"):
        path.write_bytes(path.read_bytes()[:20_000] if damage is None else damage)
    assert warm_team.run().outcome == "cycles_used_up"
    assert warm_team.resume(cycles=2).outcome == "cycles_used_up"
    assert [event["resumed"] for event in warm_team.of_type("role_started")] == [True]


def test_run_continues_if_the_cache_cannot_be_written(team: TeamFolder, cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("in the way")
    assert team.run().outcome == "cycles_used_up"
    assert cache.read_text() == "in the way"


def test_neither_roles_nor_tests_can_write_the_databases(warm_team: TeamFolder, cache: Path) -> None:
    attempt = {"call": "exec_command", "arguments": {"cmd": f"touch {cache}/forged; touch here.txt"}}
    warm_team.write_catalog(one={"prompt_flags": {"allow_write": True}})
    warm_team.write_plays(one=[{"steps": [attempt, say()]}])
    assert warm_team.run().outcome == "cycles_used_up"
    assert (warm_team.workspace / "here.txt").exists()
    assert not (cache / "forged").exists()


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_what_others_can_write_is_not_used(store: Path, tmp_path: Path, mode: int) -> None:
    shutil.copytree(store, tmp_path / "store")
    (tmp_path / "store").chmod(mode)
    assert list(filled(tmp_path / "store", new_home(tmp_path)).iterdir()) == []


@pytest.fixture
def homes_that_miss(tmp_path: Path) -> Iterator[WarmHomes]:
    homes = homes_with(tmp_path / "store")
    homes.fill(new_home(tmp_path))
    yield homes
    assert not [path for path in (tmp_path / "store").iterdir() if path.name.startswith("making-")]


def test_nothing_is_made_where_others_can_write(homes_that_miss: WarmHomes, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store").chmod(0o777)
    with homes_that_miss.made_meanwhile():
        pass
    assert list((tmp_path / "store").iterdir()) == []


def test_what_is_not_made_by_the_end_of_the_run_is_dropped(homes_that_miss: WarmHomes, tmp_path: Path) -> None:
    before = set(psutil.Process().children())
    with homes_that_miss.made_meanwhile():
        pass
    assert list((tmp_path / "store").iterdir()) == []
    assert set(psutil.Process().children()) == before
