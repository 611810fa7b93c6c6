"""``bundle`` and ``verify``, given as a user gives them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.bundles import Parts, shop_bundle
from tests.support.console import console

pytestmark = pytest.mark.real

__all__ = ["shop_bundle"]


@pytest.mark.sample("bundle", "verify")
def test_run_is_bundled_and_verified_elsewhere(shop_bundle: Path, tmp_path: Path) -> None:
    """In another time zone and with another home, without a login; nothing is left of it."""
    bundle = tmp_path / "shop.bundle"
    done = console("bundle", "-o", str(bundle), folder=shop_bundle.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{bundle}: 3 turns, 3 states, 0 test results, ")
    elsewhere = {"TZ": "Asia/Kathmandu", "HOME": str(tmp_path), "CODEX_HOME": str(tmp_path / "none")}
    done = console("verify", "shop.bundle", folder=tmp_path, variables=elsewhere)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "same: prompts, handoffs, outcome, exit code and changed files, as recorded",
        "same: 3 turns in order",
        "same: 2 changes of the workspace, 1 file",
        "same: 0 test results",
        "same: 1 figure",
        "not checked: fields of the recording that a replay does not use: recording.codex_multi_role, recording.model, "
        "recording.playbook, recording.recorded_at, recording.roles",
        "not checked: team/playbooks/playbook.yaml, because the run does not use it",
        "not checked: that a model gave these answers, because only its provider knows",
        "not checked: tokens, because they are the provider's own figures",
        "verified: nothing differs, 4 not checked",
    ]
    assert not list(tmp_path.glob(".cache/codex-multi-role/replays/*"))


def test_forged_bundle_and_other_file_have_own_exit_codes(shop_bundle: Path, tmp_path: Path) -> None:
    parts = Parts.of(shop_bundle, tmp_path / "parts")
    parts.claims["run"] = "another"
    parts.write(tmp_path / "forged.bundle")
    done = console("verify", "forged.bundle", "--json", folder=tmp_path)
    result = json.loads(done.stdout)
    assert (done.returncode, result["exit_code"], result["verdict"]) == (1, 1, "refused: 1 difference, 0 not checked")
    assert result["lines"][0]["status"] == "differs"
    (tmp_path / "text.txt").write_text("text")
    done = console("verify", "text.txt", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "text.txt is not a bundle" in done.stderr
