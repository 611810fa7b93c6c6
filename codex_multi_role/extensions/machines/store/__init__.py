"""Where runs are saved so that another machine can continue them: one address, content-addressed objects, manifests.

blobs/<2 hex>/<sha256>                               pieces of files, compressed
runs/<run_id>/<attempt>/<number>-<sha256>.json.zlib  manifests: the files of one saved state, the workspace's tree
bundles/<sha256>.json.zlib                              workspaces that travel as git bundles
codex-multi-role-store.json                          the identity of the store
probe                                                written before a worker starts a run: is there room?
"""

from codex_multi_role.extensions.machines.store.restoring import SavedState, fill_workspace, read_saved, restore_run
from codex_multi_role.extensions.machines.store.saver import RunSaver
from codex_multi_role.extensions.machines.store.store import Store, StoreUnwritable
from codex_multi_role.extensions.machines.store.workspace_sources import (
    WorkspaceSource,
    bundle_workspace,
    make_workspace,
)

__all__ = [
    "RunSaver",
    "SavedState",
    "Store",
    "StoreUnwritable",
    "WorkspaceSource",
    "bundle_workspace",
    "fill_workspace",
    "make_workspace",
    "read_saved",
    "restore_run",
]
