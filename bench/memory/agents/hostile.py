"""The shared code of the agents of the hostile measurement. All of it is bounded in count and time."""

import http.client
import json
import os
import socket
import threading
import time
from urllib.parse import urlsplit

address = urlsplit(os.environ["OPENAI_BASE_URL"])
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
path = address.path + "/chat/completions"
# Seconds after which an agent stops.
patience = 30


def question(text, stream):
    return json.dumps({"model": "model", "stream": stream, "messages": [{"role": "user", "content": text}]})


def ask(text, stream=False, read=True):
    """Sends a request to the model and reads the answer, or leaves it unread until this process ends."""
    try:
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=patience)
        connection.request("POST", path, question(text, stream), headers)
        if not read:
            time.sleep(patience)
            return None
        answer = connection.getresponse()
        until = time.monotonic() + patience
        first = b""
        while (part := answer.read(65536)) and time.monotonic() < until:
            first = first or part
        return first
    except OSError:
        return None


def send(body, times=1):
    """Sends large requests and never reads an answer."""
    for _ in range(times):
        try:
            connection = socket.create_connection((address.hostname, address.port), timeout=patience)
            lines = [f"POST {path} HTTP/1.1", f"Host: {address.netloc}", f"Content-Length: {len(body)}"]
            lines += [f"{name}: {value}" for name, value in headers.items()]
            connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            connection.settimeout(2)
            connection.recv(1)
            connection.close()
        except OSError:
            pass


def together(count, work, *given, **named):
    threads = [threading.Thread(target=work, args=given, kwargs=named, daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + patience
    for thread in threads:
        thread.join(max(0, until - time.monotonic()))


def honest(times=6):
    """What honest agents do: they need an answer each time."""
    for _ in range(times):
        for attempt in range(5):
            if b"brief" in (ask("brief") or b""):
                break
            time.sleep(1)
        else:
            raise SystemExit("the model does not answer")
        time.sleep(0.5)
