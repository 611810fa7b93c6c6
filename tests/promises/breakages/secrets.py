"""5. No secret of the parent's environment reaches a tool command unless named; what is left to be read holds none."""

from __future__ import annotations

from tests.promises.breakage import textual

broken = textual(5)
LEFT_TO_BE_READ = "test_secrets.py::test_what_is_left_to_be_read_holds_no_secret_whoever_said_it"
NEITHER = "test_secrets.py::test_neither_a_commands_nor_a_tests_environment_has_a_secret"

SECRETS = (
    broken(
        "a role's command gets a core of the environment only",
        "codex/codex_settings.py",
        "'shell_environment_policy.inherit=\"core\"',",
        "'shell_environment_policy.inherit=\"all\"', 'shell_environment_policy.ignore_default_excludes=true',",
        ("codex/test_client.py::test_tool_commands_see_no_secret_of_our_environment", NEITHER),
    ),
    broken(
        "tests get no secret",
        "checks/python.py",
        "python.activate(without_secrets(context.environment))",
        "python.activate(context.environment)",
        ("checks/test_tests.py::test_no_secret_reaches_the_tests", NEITHER),
    ),
    broken(
        "a check's command gets what was named and no secret",
        "checks/command.py",
        "environment = without_secrets(context.environment)",
        "environment = dict(context.environment)",
        ("checks/test_command.py::test_environment_has_what_was_named_and_no_secret",),
    ),
    broken(
        "a name says what a secret is",
        "host/redaction.py",
        'r"KEY|TOKEN|SECRET|',
        'r"TOKEN|SECRET|',
        ("host/test_redaction.py::test_secret_variables_are_hidden_from_model_programs",),
    ),
    broken(
        "a shape says it, too",
        "host/redaction.py",
        "if not SECRET_NAME.search(name) and not _has_shape(value))",
        "if not SECRET_NAME.search(name))",
        ("host/test_redaction.py::test_secret_variables_are_hidden_from_model_programs",),
    ),
    broken(
        "secrets are masked by value",
        "host/redaction.py",
        "        if self._values is not None:\n            text = self._values.sub(MASK, text)\n",
        "",
        (LEFT_TO_BE_READ,),
    ),
    broken(
        "secrets are masked by shape",
        "host/redaction.py",
        "SECRET_SHAPE.sub(MASK, text))\n",
        "text)\n",
        (LEFT_TO_BE_READ, "host/test_redaction.py::test_private_key_is_masked_whole_and_when_cut_short"),
    ),
    broken(
        "messages are masked", "codex/wire_log.py", "return self.redact(line", "return str(line", (LEFT_TO_BE_READ,)
    ),
    broken(
        "prompts are masked",
        "run_folder/turn_folder.py",
        '"prompt.txt", self.redact(prompt)',
        '"prompt.txt", prompt',
        (LEFT_TO_BE_READ,),
    ),
    broken(
        "answers are masked",
        "run_folder/turn_folder.py",
        '"assistant_text.txt", self.redact(assistant_text)',
        '"assistant_text.txt", assistant_text',
        (LEFT_TO_BE_READ,),
    ),
    broken(
        "what tests print is masked",
        "checks/output_files.py",
        "path.write_text(context.redact(text)",
        "path.write_text(text",
        (LEFT_TO_BE_READ,),
    ),
    broken(
        "events are masked",
        "run_folder/event_log.py",
        "self._redact.within(event.as_record())",
        "event.as_record()",
        (LEFT_TO_BE_READ,),
    ),
    broken(
        "questions are masked",
        "run_folder/questions.py",
        "question=self._redact(question.question)",
        "question=question.question",
        (LEFT_TO_BE_READ,),
    ),
    broken(
        "a goal is masked where it is told",
        "run_folder/folder.py",
        "{name: self.redact.within(record[name])",
        "{name: record[name]",
        ("test_secrets.py::test_goal_that_holds_a_secret_is_masked_where_it_is_told",),
    ),
    broken(
        "what stderr says is masked",
        "codex/child.py",
        'text = self._redact(TERMINAL_COLOUR.sub("", line.decode("utf-8", "replace")))',
        'text = TERMINAL_COLOUR.sub("", line.decode("utf-8", "replace"))',
        ("codex/test_transport.py::test_what_a_child_says_on_stderr_is_masked",),
    ),
    broken(
        "what an approval is about is masked",
        "steps/turn_events.py",
        "told = self._run.services.folder.redact(detail)",
        "told = detail",
        ("steps/test_containment.py::test_secret_in_what_was_asked_for_is_masked",),
    ),
    broken(
        "a setting with a secret is refused",
        "lifecycle/definitions.py",
        "        _refuse_secrets(self.options, self.catalog)\n",
        "",
        ("test_secrets.py::test_setting_with_secret_is_refused_before_writing",),
    ),
    broken(
        "only its user looks into a run",
        "run_folder/folder.py",
        "path.mkdir(mode=0o700)",
        "path.mkdir()",
        ("test_secrets.py::test_only_its_user_can_look_into_a_run",),
    ),
    broken(
        "what is told is masked before it is cut",
        "steps/turn_events.py",
        "return self._run.services.folder.redact(str(text))[:SUMMARY_LENGTH]",
        "return str(text)[:SUMMARY_LENGTH]",
        ("test_secrets.py::test_secret_is_masked_before_text_is_cut",),
    ),
    broken(
        "a recording has no secret of the environment",
        "lifecycle/recordings/model_providers.py",
        "places.named(folder.redact.within(line))",
        "places.named(dict(line))",
        ("lifecycle/recordings/test_record_and_replay.py::test_no_secret_and_no_path_of_this_machine_is_in_the_file",),
    ),
    broken(
        "a recording has no login that an answer repeats",
        "playbook/recorder.py",
        "self.file.add(masked.within(line))",
        "self.file.add(line)",
        ("playbook/test_recorder.py::test_token_that_the_answer_repeats_is_masked",),
    ),
    broken(
        "a password in an address is masked",
        "host/redaction.py",
        'return LOGIN.sub(rf"\\1{MASK}", ',
        "return (",
        ("host/test_redaction.py::test_password_in_an_address_is_masked_whoever_knows_it",),
    ),
    broken(
        "a telemetry receiver's headers are secrets",
        "host/redaction.py",
        r"OTLP_\w*HEADERS",
        r"OTLP_\w*NOTHING",
        ("host/test_redaction.py::test_each_header_that_is_sent_with_telemetry_is_a_secret",),
    ),
)
