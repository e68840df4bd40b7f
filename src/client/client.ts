import type { OperationName, RequestOf, ResponseOf } from '../contract/operations.ts';
import type { RunRecord } from '../contract/record.ts';
import { OffsiteError } from '../offsite-error.ts';
import { KnownKeys } from '../redaction/known-keys.ts';
import { parseAddress } from './address.ts';
import { checkApiKey, quoteWithout } from './api-key.ts';
import { type CallParts, call } from './call.ts';
import { openConnections } from './connections.ts';
import { type CallOptions, type ClientOptions, defaultDeadlines, defaultRetryLimits } from './options.ts';
import { retryBudget } from './retry.ts';
import { listRuns, type PageNumbering } from './runs.ts';

/** An Eval Service, seen from here. Disposing ends the calls in flight and closes the connections. */
export interface Client extends AsyncDisposable {
  /** Where it is, for messages: `https://evals.example`. */
  readonly origin: string;
  /**
   * Calls an operation. The request is checked strictly before it is sent; the answer is read tolerantly and
   * keeps fields that the contract does not know.
   *
   * Throws `RequestInvalid`, a `ServiceRefusal` (`DecodeRefusal`, `Unauthorized`, `Forbidden`, `NotFound`,
   * `Conflict` or another),
   * `ConnectionFailure`, `DeadlineExceeded`, `UndecodableAnswer`, or for an operation that must not be
   * repeated
   * `UnknownOutcome`; the signal's reason when it aborts.
   */
  call<Name extends OperationName>(
    name: Name,
    request: RequestOf<Name>,
    options?: CallOptions,
  ): Promise<ResponseOf<Name>>;
  /**
   * A case's runs over all pages, newest first, each once. `variant` is a variant's id or a model. The
   * options hold for each page.
   */
  runs(filter: { caseId: string; variant?: string }, options?: CallOptions): AsyncIterable<RunRecord>;
}

/**
 * Makes a client. Connects to nothing yet. Throws an input error for an address, key, CA file or proxy that
 * cannot work.
 */
export function createClient(options: ClientOptions): Client {
  const { url, apiKey, clock, insecureHttp = false, random = Math.random, log } = options;
  checkApiKey(apiKey);
  const address = parseAddress(url, insecureHttp);
  const deadlines = { ...defaultDeadlines, ...options.deadlines };
  const limits = { ...defaultRetryLimits, ...options.retry };
  const connections = openConnections(address, options, deadlines.connect);
  const closing = new AbortController();
  const numbering: PageNumbering = { first: 1 };
  const parts: CallParts = {
    address,
    connections,
    apiKey,
    quote: quoteWithout(apiKey),
    keys: options.keys ?? new KnownKeys([['the API key', apiKey]]),
    clock,
    random,
    log,
    deadlines,
    limits,
    budget: retryBudget(limits.budget),
    closing: closing.signal,
  };
  const client: Client = {
    origin: address.origin,
    async call<Name extends OperationName>(name: Name, request: RequestOf<Name>, options: CallOptions = {}) {
      return (await call(parts, name, request, options)) as ResponseOf<Name>;
    },
    runs: (filter, options) =>
      listRuns((request) => client.call('evals.runs.list', request, options), filter, numbering),
    async [Symbol.asyncDispose]() {
      closing.abort(closed(address.origin));
      await connections[Symbol.asyncDispose]();
    },
  };
  return client;
}

function closed(origin: string): OffsiteError {
  return new OffsiteError(`the client of ${origin} was closed`, {
    code: 'CLIENT_CLOSED',
    kind: 'infrastructure',
  });
}
