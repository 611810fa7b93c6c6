"""Where runs are saved so that another machine can continue them: one address, content-addressed objects, manifests.

blobs/<2 hex>/<sha256>                               pieces of files, compressed
runs/<run_id>/<attempt>/<number>-<sha256>.json.zlib  manifests: the files of one saved state, the workspace's tree
bundles/<sha256>.json.zlib                              workspaces that travel as git bundles
codex-multi-role-store.json                          the identity of the store
probe                                                written before a worker starts a run: is there room?
"""
