import type { Readable } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import { inputError, type OffsiteError } from '../base/offsite-error.ts';
import { serviceAnswers } from '../bounds/service.ts';
import { type KnownKeys, Redactor } from '../redaction/redactor.ts';
import type { Transport } from './exchange.ts';

/**
 * Milliseconds: until a connection is open, including TLS; for one attempt, with the whole answer; for a call
 * with all its attempts, for such a call for a page of runs, and for one that sends a file. The attempt of a
 * page, which may be large, has its time until the first bytes, and between any two.
 */
export type Deadlines = Pick<typeof serviceAnswers.time, 'connect' | 'attempt' | 'call' | 'page' | 'file'>;

export interface RetryLimits {
  /** Attempts of one call, including the first. */
  attempts: number;
  /**
   * Retries that this client may make while nothing succeeds, over all its calls; each success returns one.
   * Once the budget is spent, each call asks a service that is down only once, instead of `attempts` times.
   */
  budget: number;
  /** Milliseconds: the longest first wait (it doubles with each attempt), and the longest wait of all. */
  firstWait: number;
  longestWait: number;
  /** Milliseconds: the longest `Retry-After` that is followed. */
  longestRetryAfter: number;
}

export interface ClientOptions {
  /** The service's base address, without `/v1`. */
  url: string;
  apiKey: string;
  /** Default: over HTTP. */
  transport?: Transport;
  clock: Clock;
  /** Returns a number from 0 (inclusive) to 1 (exclusive); used for jitter. */
  random?: () => number;
  /** Receives what was left out of an answer because it could not be read, each message once. */
  note?: ((message: string) => void) | undefined;
  /** PEM certificates of authorities to trust in addition to the system's. */
  caBundle?: string | Buffer;
  /** Allows `http:` to hosts other than this one: the key is then sent unencrypted. */
  insecureHttp?: boolean;
  deadlines?: Partial<Deadlines>;
  retry?: Partial<RetryLimits>;
  /** Keys that no request may contain; by default only the API key. */
  keys?: KnownKeys;
  /**
   * The environment with `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` (in either case). Without it, no proxy is
   * used.
   */
  env?: NodeJS.ProcessEnv;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Milliseconds for the whole call. Default: `deadlines.call`, for a page of runs `deadlines.page`. */
  deadlineMs?: number;
}

/** A file that is sent as the body of a request. */
export interface SentFile {
  type: string;
  byteSize: number;
  /** Reads it from its beginning, for each attempt anew. */
  open(): Readable;
}

export const defaultDeadlines: Deadlines = {
  connect: serviceAnswers.time.connect,
  attempt: serviceAnswers.time.attempt,
  call: serviceAnswers.time.call,
  page: serviceAnswers.time.page,
  file: serviceAnswers.time.file,
};

export const defaultRetryLimits: RetryLimits = {
  attempts: serviceAnswers.count.tries,
  budget: serviceAnswers.count.retryBudget,
  firstWait: 500,
  longestWait: serviceAnswers.time.retryWait,
  longestRetryAfter: serviceAnswers.time.retryAfter,
};

/**
 * Checks that a key can be sent in a header. Throws an input error that says where the problem is without
 * showing the key.
 */
export function checkApiKey(key: string): void {
  if (key === '') throw invalid('the API key is empty');
  const position = key.search(/[^\x21-\x7e]/);
  if (position === -1) return;
  const character = (key.codePointAt(position) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  const place = `${position + 1} of ${key.length}`;
  throw invalid(`the API key has a character that no header can carry: U+${character}, at ${place}`);
}

function invalid(message: string): OffsiteError {
  return inputError('CLIENT_KEY_INVALID', message, {
    hint: 'A key is one word of ASCII letters, digits and signs. Look for a line break, a space or "Bearer".',
  });
}

/**
 * Makes text from outside safe for an error or a log: without the key or control characters, and no longer
 * than `limit`.
 */
export type Quote = (text: string, limit?: number) => string;

/** Quotes the text of a service, which may repeat the key in any form. */
export function quoteWithout(key: string): Quote {
  const redactor = new Redactor([key], { shortest: 1, mark: '[API key]' });
  return (text, limit = 2000) => {
    // Escape sequences would control the user's terminal.
    const shown = redactor
      .text(text)
      .replace(/\p{Cc}+/gu, ' ')
      .trim();
    return shown.length > limit ? `${shown.slice(0, limit)}…` : shown;
  };
}
