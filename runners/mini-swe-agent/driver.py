"""Runs `mini` on the message on stdin, and reports what its agent does."""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from driver_lines import is_of_model, output, report, session, text_of, usage

from minisweagent.agents.interactive import InteractiveAgent
from minisweagent.exceptions import Submitted
from minisweagent.run import mini

# mini-swe-agent asks its models to end a task with this command. It is its way to say "done".
SUBMIT = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"

session_id, is_continued = session()
trajectory = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{session_id}.json")
problem = None


class ReportingAgent(InteractiveAgent):
    """The agent of `mini`, which reports its messages and commands."""

    def __init__(self, model, env, **kwargs):
        super().__init__(model, env, **kwargs)
        self.earlier = None
        self.commands = 0
        if is_continued:
            with open(trajectory, encoding="utf-8") as file:
                self.earlier = json.load(file)["messages"]
        self.execute, env.execute = env.execute, self.execute_and_report

    def run(self, task="", **kwargs):
        self.task = task
        return super().run(task, **kwargs)

    def add_messages(self, *messages):
        if self.earlier is not None:
            # These messages are the instructions and the task. A conversation that continues has instructions
            # already, so it gets only the task, in the words in which mini adds a task that its user types.
            kept = [message for message in self.earlier if message.get("role") != "exit"]
            added = {"role": "user", "content": f"The user added a new task: {self.task}"}
            messages, self.earlier = [added], None
            self.messages.extend(kept)
        for message in messages:
            report_message(message)
        return super().add_messages(*messages)

    def execute_and_report(self, action, *args, **kwargs):
        self.commands += 1
        key, command = str(self.commands), action.get("command", "")
        is_submit = command.strip() == SUBMIT
        if is_submit:
            report("tool", id=key, name="submit", input={"command": command})
        else:
            report("command", id=key, command=command)
        try:
            result = self.execute(action, *args, **kwargs)
        except Submitted as submitted:
            submission = submitted.messages[0]["extra"]["submission"]
            if is_submit:
                report("tool_end", id=key, output=submission, failed=False)
            else:
                report("command_end", id=key, exitCode=0, **output(f"{SUBMIT[5:]}\n{submission}"))
            raise
        if is_submit:
            report("tool_end", id=key, output=result["output"], failed=True)
        else:
            code = result["returncode"]
            # mini returns -1 for a command that it ended. If a signal ended the command, Python returns the
            # negative number of the signal.
            known = {} if result["exception_info"] else {"exitCode": code if code >= 0 else 128 - code}
            report("command_end", id=key, **known, **output(result["output"]))
        return result


def report_message(message):
    extra = message.get("extra", {})
    response = extra.get("response")
    if isinstance(response, dict):
        usage(response.get("usage"))
    if message.get("role") == "assistant":
        report("message", text=text_of(message.get("content")))
    elif extra.get("interrupt_type") == "FormatError":
        # mini refused the answer, which only this message contains.
        for choice in response.get("choices", []) if isinstance(response, dict) else []:
            report("message", text=text_of(choice.get("message", {}).get("content")))
        report("note", text="mini-swe-agent refused the answer, which does not call a tool in the required form")


def status_of(result):
    status = result.get("exit_status")
    if status == "Submitted":
        return {"status": "done", "message": ""}
    if status == "LimitsExceeded":
        return {"status": "agent-failed", "message": "mini-swe-agent reached its limit of turns"}
    return {"status": "agent-failed", "message": f"mini-swe-agent gave up: {status}"}


message = sys.stdin.read()
sys.argv[0] = "mini"
sys.argv += ["--agent-class=__main__.ReportingAgent", f"--output={trajectory}", f"--task={message}"]
report("begin", session=session_id)
try:
    agent = mini.app(args=sys.argv[1:], standalone_mode=False)
except Exception as error:
    status = "model-failed" if is_of_model(error) else "agent-failed"
    report("end", status=status, message=f"{type(error).__name__}: {error}")
    sys.exit(f"{type(error).__name__}: {error}")
report("end", **status_of(agent.messages[-1].get("extra", {})))
