import { type BackoffLimits, backoff, type Clock } from '../base/clock.ts';
import { infrastructureError, inputError, messageOf, type OffsiteError } from '../base/offsite-error.ts';
import { parseForeignJson } from '../base/parse-json.ts';
import { spanReceipts } from '../bounds/service.ts';

/** Milliseconds between tries. */
const waits: BackoffLimits = { first: 1_000, longest: spanReceipts.time.retryWait };
/** The statuses that OTLP allows a client to try again after (https://opentelemetry.io/docs/specs/otlp/). */
const retryableStatuses = [429, 502, 503, 504];

interface Receiver {
  url: URL;
  headers: Record<string, string>;
  clock: Clock;
  signal: AbortSignal;
  /** From 0 (inclusive) to 1 (exclusive). */
  random: () => number;
}

/**
 * The URL that takes traces: as given if it has a path, else the protocol's own path on that host. Throws an
 * input error if it is not a URL of http or https.
 */
export function receiverUrl(given: string): URL {
  const url = URL.parse(given);
  const refused = (message: string, hint: string) => inputError('OTLP_URL_INVALID', message, { hint });
  if (!url || !/^https?:$/.test(url.protocol))
    throw refused(
      'that is not a URL of http or https',
      'Give the address of a receiver, such as http://127.0.0.1:4318, or the name of a file.',
    );
  if (url.username !== '' || url.password !== '')
    throw refused(
      'the URL of a receiver must not hold a user or a password',
      'Put them into OTEL_EXPORTER_OTLP_HEADERS: authorization=Basic%20...',
    );
  if (url.pathname === '/') url.pathname = '/v1/traces';
  return url;
}

/**
 * The headers that `OTEL_EXPORTER_OTLP_HEADERS` names: `name=value` pairs between commas, percent-encoded, as
 * OpenTelemetry's own exporters read them.
 */
export function otlpHeaders(setting = ''): Record<string, string> {
  const pairs = setting.split(',').filter((pair) => pair.trim() !== '');
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf('=');
      if (at < 1) throw badHeaders();
      try {
        const value = decodeURIComponent(pair.slice(at + 1).trim());
        const name = pair.slice(0, at).trim().toLowerCase();
        new Headers([[name, value]]);
        return [name, value];
      } catch {
        throw badHeaders();
      }
    }),
  );
}

function badHeaders(): OffsiteError {
  return inputError('OTLP_HEADERS_INVALID', 'OTEL_EXPORTER_OTLP_HEADERS cannot be read', {
    hint: 'Write name=value pairs between commas, with percent-encoded values.',
  });
}

/**
 * Sends one request of OTLP in JSON. Tries again where the protocol allows it. Resolves with the number of
 * spans that the receiver did not take. Throws the infrastructure error `OTLP_REFUSED`.
 */
export async function sendSpans(body: Uint8Array, receiver: Receiver): Promise<number> {
  const { clock, signal, random } = receiver;
  for (let failed = 1; ; failed++) {
    const answer = await post(body, receiver);
    if ('rejected' in answer) return answer.rejected;
    if (!answer.mayPass || failed === spanReceipts.count.tries) throw refused(receiver.url, answer.why);
    await clock.sleep(Math.max(answer.waitMs, backoff(failed, waits, random)), signal);
  }
}

type Answer = { rejected: number } | { mayPass: boolean; waitMs: number; why: string };

async function post(body: Uint8Array, { url, headers, signal }: Receiver): Promise<Answer> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: Buffer.from(body),
      redirect: 'error',
      signal: AbortSignal.any([signal, AbortSignal.timeout(spanReceipts.time.attempt)]),
    });
    text = await beginningOf(response);
  } catch (error) {
    signal.throwIfAborted();
    return { mayPass: true, waitMs: 0, why: messageOf((error as Error).cause ?? error) };
  }
  if (response.ok) return { rejected: rejectedIn(text) };
  const seconds = Number(response.headers.get('retry-after'));
  return {
    mayPass: retryableStatuses.includes(response.status),
    waitMs: Number.isFinite(seconds) ? Math.min(seconds * 1_000, waits.longest) : 0,
    why: `it answered ${response.status}: ${text.slice(0, spanReceipts.bytes.shown)}`,
  };
}

/** As much of an answer as matters. */
async function beginningOf(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let room = spanReceipts.bytes.answer;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    room -= chunk.byteLength;
    if (room <= 0) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}

function rejectedIn(text: string): number {
  try {
    const rejected = Number(
      (parseForeignJson(text) as { partialSuccess?: { rejectedSpans?: unknown } }).partialSuccess
        ?.rejectedSpans ?? 0,
    );
    return Number.isSafeInteger(rejected) && rejected > 0 ? rejected : 0;
  } catch {
    return 0;
  }
}

function refused(url: URL, why: string): OffsiteError {
  return infrastructureError(
    'OTLP_REFUSED',
    `${url.origin}${url.pathname} did not accept the spans: ${why}`,
    {
      hint: 'Exporting again sends the same spans with the same ids. OTEL_EXPORTER_OTLP_HEADERS sets headers.',
    },
  );
}
