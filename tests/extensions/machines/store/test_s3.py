"""A store in S3, on a local server that speaks its protocol: only here objects are sent by a library."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from codex_multi_role.errors import StorageError
from codex_multi_role.extensions.machines.store.restoring import restore_run
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store
from codex_multi_role.run_folder import RunFolder
from tests.support.run_folders import STATES, contents, make_state

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::DeprecationWarning:botocore"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:moto"),
]
SECRET = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    from moto.server import ThreadedMotoServer
    from s3fs import S3FileSystem

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    S3FileSystem.clear_instance_cache()
    name = f"bucket-{uuid4().hex}"  # all servers of a process have the same buckets
    S3FileSystem().mkdir(name)
    yield f"s3://{name}/prefix"
    S3FileSystem.clear_instance_cache()
    server.stop()


def test_states_are_saved_in_s3_and_restored(bucket: str, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    saver, saved = RunSaver(Store.open(bucket), run, 1), {}
    for number in range(STATES):
        make_state(run.path, number)
        saved[saver.save()] = contents(run.path)
    for manifest, expected in saved.items():
        restore_run(Store.open(bucket), manifest, tmp_path / "restored")
        assert contents(tmp_path / "restored") == expected


def test_first_users_at_once_agree_on_identity_in_s3(bucket: str) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(Store.open(bucket).identity)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 8
    assert len(set(found)) == 1


def test_missing_bucket_and_unreachable_server_are_named(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from s3fs import S3FileSystem

    with pytest.raises(StorageError, match=r"the store s3://no-such-bucket/x cannot be .*bucket does not exist"):
        Store.open("s3://no-such-bucket/x")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    S3FileSystem.clear_instance_cache()
    with pytest.raises(StorageError, match=rf"the store {bucket} cannot be read: .*127\.0\.0\.1:1") as caught:
        Store.open(bucket)
    assert SECRET not in f"{caught.value} {caught.value.hint}"
