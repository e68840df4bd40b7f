import type { Readable } from 'node:stream';
import type { Clock } from '../base/clock.ts';
import { serviceAnswers } from '../bounds/service.ts';
import type { KnownKeys } from '../redaction/known-keys.ts';
import type { Transport } from './exchange.ts';

/** Receives a client's log; a pino logger fits. */
export interface ClientLog {
  debug(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Milliseconds. */
export interface Deadlines {
  /** Until a connection is open, including TLS. */
  connect: number;
  /**
   * For one attempt: connecting, sending and the whole answer. For a page of runs, which may be large: until
   * its first bytes, and between any two.
   */
  attempt: number;
  /** For a call: all its attempts and the waits between them. */
  call: number;
  /** The same for a page of runs. */
  page: number;
  /** For a call that sends a file, and for each attempt of it. */
  file: number;
}

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
  log?: ClientLog;
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
