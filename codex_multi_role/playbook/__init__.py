"""The embedded model, a loopback Responses API that plays YAML."""

from codex_multi_role.playbook.playbook_server import PlaybookServer
from codex_multi_role.playbook.request import AnswerKey
from codex_multi_role.playbook.script import Playbook, is_automatic, list_playbooks, load_playbook, playbook_names

__all__ = [
    "AnswerKey",
    "Playbook",
    "PlaybookServer",
    "is_automatic",
    "list_playbooks",
    "load_playbook",
    "playbook_names",
]
