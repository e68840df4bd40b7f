/** A shorter key is no secret (`ollama`, `EMPTY`, `lm-studio`), and replacing it would change what models say. */
const shortestSecret = 12;

const mark = Buffer.from('[redacted]');

/** Keeps a key out of everything that leaves the gateway. */
export interface Redaction {
  text(text: string): string;
  /** For one stream of bytes; a key may be cut anywhere. */
  stream(): StreamRedaction;
}

export interface StreamRedaction {
  /** What may go on. Bytes that could be a key's beginning wait for the next call; all others go at once. */
  push(chunk: Uint8Array): Buffer;
  /** What was waiting. */
  end(): Buffer;
}

/** Replaces the key as it is, and as JSON or a URL would write it. */
export function redactionOf(key: string | undefined): Redaction {
  const secret = key !== undefined && key.length >= shortestSecret ? key : undefined;
  const forms =
    secret === undefined
      ? []
      : [...new Set([secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)])];
  const needles = forms.map((form) => Buffer.from(form));
  return {
    text: (text) => forms.reduce((shown, form) => shown.replaceAll(form, '[redacted]'), text),
    stream: () => redactStream(needles),
  };
}

function redactStream(needles: readonly Buffer[]): StreamRedaction {
  if (needles.length === 0) return unchanged;
  let held = nothing;
  return {
    push(chunk) {
      const fresh = bufferOf(chunk);
      const bytes = held.length > 0 ? Buffer.concat([held, fresh]) : fresh;
      const clean = needles.reduce(replaceAll, bytes);
      const kept = Math.max(...needles.map((needle) => overlap(clean, needle)));
      if (kept === 0) {
        held = nothing;
        return clean;
      }
      held = Buffer.from(clean.subarray(clean.length - kept));
      return clean.subarray(0, clean.length - kept);
    },
    end() {
      const rest = held;
      held = nothing;
      return rest;
    },
  };
}

const nothing = Buffer.alloc(0);
const unchanged: StreamRedaction = { push: bufferOf, end: () => nothing };

function bufferOf(chunk: Uint8Array): Buffer {
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}

function replaceAll(bytes: Buffer, needle: Buffer): Buffer {
  let from = 0;
  const parts: Buffer[] = [];
  for (let at = bytes.indexOf(needle); at !== -1; at = bytes.indexOf(needle, from)) {
    parts.push(bytes.subarray(from, at), mark);
    from = at + needle.length;
  }
  return from === 0 ? bytes : Buffer.concat([...parts, bytes.subarray(from)]);
}

/** How many of the last bytes are the first of the needle. */
function overlap(bytes: Buffer, needle: Buffer): number {
  const [first = 0] = needle;
  const tail = bytes.subarray(Math.max(0, bytes.length - needle.length + 1));
  for (let at = tail.indexOf(first); at !== -1; at = tail.indexOf(first, at + 1)) {
    if (tail.subarray(at).equals(needle.subarray(0, tail.length - at))) return tail.length - at;
  }
  return 0;
}
