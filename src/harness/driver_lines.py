"""What a driver prints: one JSON object per line. See driver-lines.ts."""

import json
import os
import sys
import uuid

# All else that the CLI and its commands print goes to stderr.
_stream = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
os.dup2(2, 1)

# Characters of an output. Longer ones lose their middle.
_KEPT = 200_000


def report(kind, **more):
    _stream.write(json.dumps({"type": kind, **more}, ensure_ascii=False) + "\n")
    _stream.flush()


def session():
    """Takes the first arguments. Returns the id of the conversation and whether it is continued."""
    word = sys.argv.pop(1)
    return (sys.argv.pop(1), True) if word == "--continue" else (str(uuid.uuid4()), False)


def text_of(content):
    """The text of a message's content: a string, a list of parts, or nothing."""
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content if isinstance(part, dict))
    return content or ""


def output(text):
    """An output, cut to what is kept of it."""
    if len(text) <= _KEPT:
        return {"output": text}
    half = _KEPT // 2
    return {"output": f"{text[:half]}\n[...]\n{text[-half:]}", "truncated": True}


def usage(given):
    """Reports the tokens of an answer, as LiteLLM counts them: those of the prompt include cached ones."""
    given = given or {}
    details = given.get("prompt_tokens_details") or {}
    report(
        "usage",
        input=given.get("prompt_tokens") or 0,
        output=given.get("completion_tokens") or 0,
        cacheRead=details.get("cached_tokens") or 0,
    )


def is_of_model(error):
    """Whether an error is one of the model's API."""
    packages = {kind.__module__.split(".")[0] for kind in type(error).__mro__}
    return not packages.isdisjoint({"litellm", "openai", "httpx"})
