"""A run in one file that another machine checks by running it again without a model."""

from codex_multi_role.proof.bundling import Bundled, make_bundle
from codex_multi_role.proof.verifying import Verification, verify_bundle

__all__ = ["Bundled", "Verification", "make_bundle", "verify_bundle"]
