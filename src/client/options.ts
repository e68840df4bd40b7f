import { serviceAnswers } from '../bounds/service.ts';
import type { Clock } from '../clock.ts';
import type { KnownKeys } from '../redaction/known-keys.ts';

/** What a client says about its work; a pino logger fits. */
export interface ClientLog {
  debug(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Milliseconds. */
export interface Deadlines {
  /** Until a connection stands, TLS included. */
  connect: number;
  /** For one attempt: connecting, sending and the whole answer. */
  attempt: number;
  /** For a call: all its attempts and the waits between them. */
  call: number;
}

export interface RetryLimits {
  /** Attempts of one call, the first included. */
  attempts: number;
  /**
   * Retries this client may make while nothing succeeds, over all its calls; each success gives one back. A
   * service that is down is thus asked once a call, instead of `attempts` times, once the budget is spent.
   */
  budget: number;
  /** Milliseconds: the longest first wait (it doubles with each attempt), and the longest of all. */
  firstWait: number;
  longestWait: number;
  /** Milliseconds: the longest that a `Retry-After` is obeyed for. */
  longestRetryAfter: number;
}

export interface ClientOptions {
  /** The service's base address, without `/v1`. */
  url: string;
  apiKey: string;
  clock: Clock;
  /** From 0 (inclusive) to 1 (exclusive); spreads the waits. */
  random?: () => number;
  log?: ClientLog;
  /** PEM certificates of authorities to trust besides the system's. */
  caBundle?: string | Buffer;
  /** Allows `http:` to hosts other than this one: the key then travels readable. */
  insecureHttp?: boolean;
  deadlines?: Partial<Deadlines>;
  retry?: Partial<RetryLimits>;
  /** Keys that no request may hold; the API key alone unless given. */
  keys?: KnownKeys;
  /**
   * Where `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` (either case) are looked up. Without it, no proxy is
   * used.
   */
  env?: NodeJS.ProcessEnv;
}

export interface CallOptions {
  signal?: AbortSignal;
  /** Milliseconds for the whole call; `deadlines.call` unless given. */
  deadlineMs?: number;
}

export const defaultDeadlines: Deadlines = {
  connect: serviceAnswers.time.connect,
  attempt: serviceAnswers.time.attempt,
  call: serviceAnswers.time.call,
};

export const defaultRetryLimits: RetryLimits = {
  attempts: serviceAnswers.count.tries,
  budget: serviceAnswers.count.retryBudget,
  firstWait: 500,
  longestWait: serviceAnswers.time.retryWait,
  longestRetryAfter: serviceAnswers.time.retryAfter,
};
