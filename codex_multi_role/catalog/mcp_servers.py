"""The key ``mcp_servers``: a role's MCP servers, and which calls of their tools are approved."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, StringConstraints

from codex_multi_role.catalog.definition import NUMBER, Alternatives, Definition, matching, pattern_in_schema

McpApproval = Literal["never", "auto", "always"]
"""``auto``: only calls of tools that the server marks as harmless."""
APPROVALS = get_args(McpApproval)  # strictest first
MAX_SECONDS = 86_400.0

_SERVER_NAME = r"[A-Za-z0-9_-]{1,64}"
_VARIABLE_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_OF_SERVER = '"{}" cannot be the name of an MCP server: use up to 64 of A-Z a-z 0-9 _ -'
_OF_VARIABLE = "must be the name of an environment variable, such as DOCS_KEY, never its value"
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
ServerName = Annotated[str, matching(_SERVER_NAME, _OF_SERVER), pattern_in_schema(_SERVER_NAME)]
VariableName = Annotated[str, matching(_VARIABLE_NAME, _OF_VARIABLE), pattern_in_schema(_VARIABLE_NAME)]
Command = Annotated[Text, matching("(?s)[^/]+|/.*", '"{}" must be a program on PATH or an absolute path')]
"""Never a path below the working folder: a server runs outside the sandbox, and roles can write there."""
Folder = Annotated[Text, matching("(?s)/.*", '"{}" must be an absolute path')]
Address = Annotated[Text, matching("(?s)https?://.*", "must start with http:// or https://")]
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS), NUMBER]


class McpServer(Definition):
    """A program to start (``command``), or the address of a server (``url``).

    ``env_vars`` and ``bearer_token_env_var`` are names of environment variables; ``env`` has values that are not
    secret. ``tools``: the approval of single tools, by name.
    """

    alternatives: ClassVar[Alternatives] = {
        "command": ("args", "env", "env_vars", "cwd"),
        "url": ("bearer_token_env_var",),
    }

    command: Command | None = Field(
        default=None, description="The program to start: its name on PATH, or an absolute path."
    )
    args: tuple[str, ...] = Field(default=(), description="Its arguments.")
    env: dict[VariableName, str] = Field(
        default_factory=dict, description="Environment variables with values that are not secret."
    )
    env_vars: tuple[VariableName, ...] = Field(default=(), description="Names of environment variables that it gets.")
    cwd: Folder | None = Field(default=None, description="Its working folder, an absolute path.")
    url: Address | None = Field(default=None, description="The address of a server, instead of `command`.")
    bearer_token_env_var: VariableName | None = Field(
        default=None, description="The environment variable with the token for `url`."
    )
    enabled_tools: tuple[Text, ...] | None = Field(
        default=None, description="The only tools that the role's model is offered."
    )
    disabled_tools: tuple[Text, ...] = Field(default=(), description="Tools that the role's model is not offered.")
    startup_timeout_sec: Seconds | None = Field(default=None, description="How long Codex waits for its start.")
    tool_timeout_sec: Seconds | None = Field(default=None, description="How long Codex waits for a call.")
    approval: McpApproval = Field(
        default="auto", description="`auto` approves calls of tools that the server marks as read-only or harmless."
    )
    tools: dict[Text, McpApproval] = Field(default_factory=dict, description="Approval of single tools, by name.")


def narrower_server(then: McpServer, now: McpServer) -> McpServer:
    """``now`` if it differs from ``then`` only by a stricter ``approval``, otherwise ``then``."""
    stricter = APPROVALS.index(now.approval) <= APPROVALS.index(then.approval)
    return now if stricter and now.model_copy(update={"approval": then.approval}) == then else then
