"""Runs `openhands --headless` on the message on stdin, and reports what its agent does."""

import functools
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver_lines import is_of_model, output, report, session, text_of, usage

session_id, is_continued = session()
settings = json.loads(sys.argv.pop(1))
message = sys.stdin.read()

from openhands.sdk import event as events
from openhands.sdk.agent import base as agent_base
from openhands.sdk.conversation.impl.local_conversation import LocalConversation
from openhands.sdk.event.conversation_error import ConversationErrorEvent
from openhands.sdk.skills import skill as skills
from openhands_cli import __version__, entrypoint
from openhands_cli.stores import agent_store
from openhands_cli.tui.content import splash
from openhands_cli.version_check import VersionInfo

# These two would ask the internet.
splash.check_for_updates = lambda: VersionInfo(__version__, None, False, None)
skills.load_public_skills = lambda *args, **kwargs: []
# The gateway retries.
agent_store.LLM = functools.partial(agent_store.LLM, num_retries=0, **settings["llm"])

main = None
problem = None
create_servers = agent_base.create_mcp_tools


def create_servers_patiently(config, _):
    """OpenHands would wait 30 s. Without one of its tool servers, it does not begin."""
    global problem
    try:
        return create_servers(config, settings["serverPatience"])
    except Exception as error:
        problem = RuntimeError(f"of its tool servers ({', '.join(config['mcpServers'])}), one failed: {error}")
        raise


agent_base.create_mcp_tools = create_servers_patiently
# The commands that run, by the id of their call.
commands = {}
counted = (0, 0, 0)


def report_event(event, is_main):
    if isinstance(event, events.ActionEvent):
        if is_main:
            report_message("".join(part.text for part in event.thought))
        report_action(event, is_main)
    elif isinstance(event, events.ObservationEvent):
        report_end(event.tool_call_id, event.observation)
    elif isinstance(event, (events.AgentErrorEvent, events.UserRejectObservation)):
        text = getattr(event, "error", None) or getattr(event, "rejection_reason", "")
        end_tool(event.tool_call_id, text, failed=True)
    elif isinstance(event, events.MessageEvent) and event.source == "agent" and is_main:
        report_message("".join(getattr(part, "text", "") for part in event.llm_message.content))
    report_usage()


def report_message(text):
    if text:
        report("message", text=text)


def report_action(event, is_main):
    key, action = event.tool_call_id, event.action
    if event.tool_name == "finish" and action is not None:
        if is_main:
            report_message(action.message)
    elif event.tool_name == "terminal" and action is not None and not action.is_input and action.command:
        commands[key] = action.command
        report("command", id=key, command=action.command)
    else:
        given = action.model_dump(mode="json", exclude={"kind"}) if action else arguments_of(event)
        # The arguments of a tool server's tool.
        given = getattr(action, "data", given)
        report("tool", id=key, name=event.tool_name, input=given)


def arguments_of(event):
    """The arguments of a call that OpenHands refuses: the model's JSON, or its text if it is none."""
    try:
        return json.loads(event.tool_call.arguments)
    except ValueError:
        return event.tool_call.arguments


def report_end(key, observation):
    # OpenHands' bash runs in a terminal, and switches its bracketed paste mode at each prompt.
    text = re.sub("\x1b\\[\\?2004[hl]", "", observation.text)
    if key not in commands:
        return end_tool(key, text, failed=observation.is_error)
    # The terminal echoes a command that is typed before bash shows its prompt.
    text = text.removeprefix(f"{commands.pop(key)}\n")
    code = observation.metadata.exit_code
    # -1: it still runs, or it was ended.
    known = {} if code == -1 else {"exitCode": code}
    report("command_end", id=key, **known, **output(text))


def end_tool(key, text, failed):
    if key in commands:
        del commands[key]
        report("command_end", id=key, **output(text))
    else:
        report("tool_end", id=key, failed=failed, **output(text))


def totals():
    all_tokens = main.conversation_stats.get_combined_metrics().accumulated_token_usage
    if all_tokens is None:
        return (0, 0, 0)
    return (all_tokens.prompt_tokens, all_tokens.completion_tokens, all_tokens.cache_read_tokens)


def report_usage():
    """Reports the tokens since the last report. OpenHands counts all of a conversation."""
    global counted
    if main is None:
        return
    before, counted = counted, totals()
    prompt, completion, cached = (now - then for now, then in zip(counted, before))
    if prompt > 0 or completion > 0:
        usage(
            {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "prompt_tokens_details": {"cached_tokens": cached},
            }
        )


original_init, original_run = LocalConversation.__init__, LocalConversation.run


def init(self, *args, callbacks=None, **kwargs):
    """Sub-agents have conversations too, which begin while the one with the user runs."""
    own = lambda event: report_event(event, main is None or main is self)
    original_init(self, *args, callbacks=[*(callbacks or []), own], **kwargs)


def run(self):
    global main, problem, counted
    if main is not None:
        return original_run(self)
    main = self
    counted = totals()
    self.max_iteration_per_run = settings.get("turns") or self.max_iteration_per_run
    report("begin", session=str(self.state.id))
    try:
        return original_run(self)
    except Exception as error:
        problem = error
        raise


LocalConversation.__init__, LocalConversation.run = init, run


def causes(error):
    while error is not None:
        yield error
        error = error.__cause__


def failure():
    """The status and the message of a turn that failed; None for one that did not."""
    if main is None:
        why = "" if problem is None else f": {problem}"
        return "agent-failed", f"OpenHands did not start{why}"
    if problem is not None:
        own = "openhands.sdk.llm"
        is_api = any(is_of_model(one) or type(one).__module__.startswith(own) for one in causes(problem))
        return "model-failed" if is_api else "agent-failed", str(problem)
    last = main.state.execution_status.value
    if last == "finished":
        return None
    errors = [one for one in main.state.events if isinstance(one, ConversationErrorEvent)]
    if errors and errors[-1].code == "MaxIterationsReached":
        return "agent-failed", f"it reached its limit of {main.max_iteration_per_run} turns"
    return "agent-failed", f"OpenHands ended as {last}"


sys.argv[0] = "openhands"
sys.argv += ["--headless", "--json", "--override-with-envs", f"--task={message}"]
if is_continued:
    sys.argv.append(f"--resume={session_id}")
entrypoint.main()
failed = failure()
if failed is None:
    report("end", status="done", message="")
else:
    report("end", status=failed[0], message=failed[1])
    sys.exit(failed[1])
