"""Runs aider on the message on stdin, and reports what it edits and runs."""

import difflib
import json
import os
import sys

place = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, place)
from driver_lines import is_of_model, output, report, session, usage

session_id, is_continued = session()
history = os.path.join(place, f"{session_id}.md")
state = os.path.join(place, f"{session_id}.json")
message = sys.stdin.read()
# What leads to the model. A .env file or a configuration in the workspace changes none of it.
access = {name: value for name, value in os.environ.items() if name.startswith(("OPENAI_", "ANTHROPIC_"))}
report("begin", session=session_id)

from aider import commands, io, linter, main, models, repomap
from aider.coders import base_coder

# The gateway retries.
models.RETRY_TIMEOUT = base_coder.RETRY_TIMEOUT = 0
# It would fetch a list of prices.
models.ModelInfoManager._update_cache = lambda self: None
# In the workspace, the cache would be part of the work.
repomap.RepoMap.TAGS_CACHE_DIR = os.path.join(place, "tags")

problem = None
last_number = 0


def numbered():
    global last_number
    last_number += 1
    return str(last_number)


def reporting_answers(send_completion):
    def wrapped(self, *args, **kwargs):
        digest, completion = send_completion(self, *args, **kwargs)
        if getattr(completion, "usage", None) is not None:
            usage(completion.usage.model_dump())
        return digest, completion

    return wrapped


def noticing_problems(send):
    def wrapped(self, *args, **kwargs):
        global problem
        problem = None
        try:
            yield from send(self, *args, **kwargs)
        except Exception as error:
            problem = error
            raise

    return wrapped


def reporting_messages(add_reply):
    def wrapped(self):
        report("message", text=self.partial_response_content or "")
        return add_reply(self)

    return wrapped


def reporting_edits(write_text):
    def wrapped(self, filename, content, *args, **kwargs):
        try:
            with open(filename, encoding=self.encoding) as file:
                before = file.read()
        except (OSError, UnicodeError):
            before = ""
        key, path = numbered(), os.path.relpath(filename)
        report("tool", id=key, name="edit", input={"path": path})
        try:
            write_text(self, filename, content, *args, **kwargs)
        except OSError as error:
            report("tool_end", id=key, output=str(error), failed=True)
            raise
        lines = difflib.unified_diff(before.splitlines(), content.splitlines(), path, path, lineterm="")
        report("tool_end", id=key, failed=False, **output("\n".join(lines)))

    return wrapped


def reporting_refusals(apply_updates):
    def wrapped(self):
        before = self.num_malformed_responses
        edited = apply_updates(self)
        if self.num_malformed_responses > before:
            report("note", text=f"aider could not apply the edits of the answer: {self.reflected_message}")
        return edited

    return wrapped


def reporting_commands(run):
    def wrapped(command, *args, **kwargs):
        key = numbered()
        report("command", id=key, command=command)
        code, printed = run(command, *args, **kwargs)
        # For a process that a signal ended, Python returns the negative number of the signal.
        report("command_end", id=key, exitCode=code if code >= 0 else 128 - code, **output(printed))
        return code, printed

    return wrapped


coder = base_coder.Coder
models.Model.send_completion = reporting_answers(models.Model.send_completion)
coder.send = noticing_problems(coder.send)
coder.add_assistant_reply_to_cur_messages = reporting_messages(coder.add_assistant_reply_to_cur_messages)
coder.apply_updates = reporting_refusals(coder.apply_updates)
io.InputOutput.write_text = reporting_edits(io.InputOutput.write_text)
base_coder.run_cmd = commands.run_cmd = reporting_commands(base_coder.run_cmd)
linter.run_cmd_subprocess = reporting_commands(linter.run_cmd_subprocess)


def fail(text, status="agent-failed"):
    report("end", status=status, message=text)
    sys.exit(text)


arguments = [
    *sys.argv[1:],
    f"--chat-history-file={history}",
    f"--input-history-file={os.path.join(place, 'input.history')}",
    *(f"--set-env={name}={value}" for name, value in access.items()),
]
if main.git is None or main.get_git_root() is None:
    # Otherwise, aider would make the workspace a repository.
    arguments.append("--no-git")
if is_continued:
    with open(state, encoding="utf-8") as file:
        files = json.load(file)
    arguments += ["--restore-chat-history", *(f"--file={path}" for path in files)]
agent = main.main(arguments, return_coder=True)
if not isinstance(agent, coder):
    fail("aider did not start")
# aider takes a message that begins with / or ! for one of its own commands.
agent.run(with_message=f"\n{message}" if message[:1] in "/!" else message)
with open(state, "w", encoding="utf-8") as file:
    json.dump(sorted(path for path in agent.abs_fnames if os.path.exists(path)), file)
if problem is not None:
    fail(f"{type(problem).__name__}: {problem}", "model-failed" if is_of_model(problem) else "agent-failed")
if agent.num_exhausted_context_windows > 0:
    fail("the model's answer was cut at its limit of tokens, or the conversation outgrew its context window")
report("end", status="done", message="")
