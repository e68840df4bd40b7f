"""What the agents of leak.yaml and crash.yaml attack the relay with. Every loop is bounded."""

import json
import os
import socket
import time
import urllib.request
from urllib.parse import urlsplit

base = os.environ["OPENAI_BASE_URL"]
token = os.environ["OPENAI_API_KEY"]
address = urlsplit(base)
place = (address.hostname, address.port)


def body(text="hello", **more):
    return json.dumps({"model": "scripted", "messages": [{"role": "user", "content": text}], **more}).encode()


def request(content=None, method="POST", path="/v1/chat/completions", headers=("Connection: close",)):
    """A well-formed request as bytes, to be damaged by whoever sends it."""
    content = body() if content is None else content
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {address.netloc}",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        f"Content-Length: {len(content)}",
        *headers,
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def connect(seconds=5):
    return socket.create_connection(place, timeout=seconds)


def exchange(data, seconds=5, most=1_000_000):
    """Sends bytes and returns what comes back until the end, a silence of so many seconds, or a reset."""
    answer = b""
    try:
        with connect(seconds) as connection:
            connection.sendall(data)
            while len(answer) < most and (part := connection.recv(65536)):
                answer += part
    except OSError:
        pass
    return answer


def ask(text="hello", seconds=30):
    """Asks the model as a client does. Raises where it does not answer."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(base + "/chat/completions", body(text), headers), timeout=seconds) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def still_answers():
    """Waits until the relay has recovered; at most 20 seconds."""
    for attempt in range(20):
        try:
            assert "model is here" in ask()
            open("survived.txt", "w").write("yes")
            return
        except (OSError, ValueError) as error:
            print("asked in vain:", error)
            time.sleep(1)
