"""Runs again without a model: the test of a team by its recordings, and bundles, which another machine checks."""

from codex_multi_role.proof.bundling import Bundled, make_bundle, make_verified_bundle
from codex_multi_role.proof.verifying import Verification, verify_bundle

__all__ = ["Bundled", "Verification", "make_bundle", "make_verified_bundle", "verify_bundle"]
