"""Where runs are saved so that another machine can continue them: one address, content-addressed objects, manifests.

blobs/<2 hex>/<sha256>                               pieces of files, compressed
runs/<run_id>/<attempt>/<number>-<sha256>.json.zlib  manifests: the files of one saved state, the workspace's tree
bundles/<sha256>.json.zlib                              workspaces that travel as git bundles
codex-multi-role-store.json                          the identity of the store
"""

from codex_multi_role.store.restoring import SavedState, read_saved, restore_run
from codex_multi_role.store.saver import RunSaver
from codex_multi_role.store.store import Store
from codex_multi_role.store.workspace_filling import fill_workspace
from codex_multi_role.store.workspace_sources import BundledWorkspace, WorkspaceSource, bundle_workspace, make_workspace

__all__ = [
    "BundledWorkspace",
    "RunSaver",
    "SavedState",
    "Store",
    "WorkspaceSource",
    "bundle_workspace",
    "fill_workspace",
    "make_workspace",
    "read_saved",
    "restore_run",
]
