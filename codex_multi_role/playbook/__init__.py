"""The embedded model, a loopback Responses API that plays YAML or a recording; and a recorder of model traffic."""

from codex_multi_role.playbook.playbook_server import PlaybookServer
from codex_multi_role.playbook.request import AnswerKey
from codex_multi_role.playbook.script import Playbook, list_playbooks, load_playbook

__all__ = ["AnswerKey", "Playbook", "PlaybookServer", "list_playbooks", "load_playbook"]
