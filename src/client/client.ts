import { infrastructureError, type OffsiteError } from '../base/offsite-error.ts';
import { serviceAnswers } from '../bounds/service.ts';
import type { OperationName, RequestOf, ResponseOf } from '../contract/operations.ts';
import { KnownKeys } from '../redaction/redactor.ts';
import { parseAddress } from './address.ts';
import { type CallParts, call } from './call.ts';
import { httpTransport } from './connections.ts';
import { askOffer, type Offer } from './offer.ts';
import {
  type CallOptions,
  type ClientOptions,
  checkApiKey,
  defaultDeadlines,
  defaultRetryLimits,
  quoteWithout,
  type SentFile,
} from './options.ts';
import { listRuns, type PageNumbering, pageOf, type ReadPage } from './pages/list-runs.ts';
import type { ListedRun, PageParts, RunParts, RunsPage } from './pages/page-reader.ts';
import { retryBudget } from './retry.ts';

/** A client of an Eval Service. Disposing ends the calls in flight and closes the connections. */
export interface Client extends AsyncDisposable {
  /** The service's origin, for messages: `https://evals.example`. */
  readonly origin: string;
  /**
   * Calls an operation. Checks the request strictly before sending it. Reads the answer tolerantly and keeps
   * fields that the contract does not know.
   *
   * Throws `RequestInvalid`, a `ServiceRefusal` (`DecodeRefusal`, `Unauthorized`, `Forbidden`, `NotFound`,
   * `Conflict` or another), `ConnectionFailure`, `DeadlineExceeded`, `UndecodableAnswer`, or, for an
   * operation that must not be repeated, `UnknownOutcome`; and the signal's reason if it aborts.
   */
  call<Name extends Exclude<OperationName, 'evals.runs.list'>>(
    name: Name,
    request: RequestOf<Name>,
    options?: CallOptions,
  ): Promise<ResponseOf<Name>>;
  /** Calls `evals.evidence` with a bundle of evidence. Throws as `call` does. */
  sendEvidence(file: SentFile, options?: Pick<CallOptions, 'signal'>): Promise<ResponseOf<'evals.evidence'>>;
  /**
   * One page of a case's runs, with the parts that the options name. What cannot be read in one run does not
   * hide the others.
   */
  page<Parts extends RunParts = 'brief'>(
    request: RequestOf<'evals.runs.list'>,
    options?: PageOptions<Parts>,
  ): Promise<RunsPage<Parts>>;
  /**
   * Whether the service has an operation that the specification does not have. Rejects only if the signal
   * aborts.
   */
  offers(operation: OperationName, options?: Pick<CallOptions, 'signal'>): Promise<Offer>;
  /**
   * A case's runs over all pages, newest first, each once. `variant` is a variant's id or a model. The
   * options apply to each page.
   */
  runs<Parts extends RunParts = 'brief'>(
    filter: { caseId: string; variant?: string },
    options?: PageOptions<Parts>,
  ): AsyncIterable<ListedRun<Parts>>;
}

export type PageOptions<Parts extends RunParts> = CallOptions & PageParts<Parts>;

/**
 * Creates a client. Does not connect yet. Throws an input error for an invalid address, key, CA file or
 * proxy.
 */
export function createClient(options: ClientOptions): Client {
  const { url, apiKey, clock, insecureHttp = false, random = Math.random } = options;
  checkApiKey(apiKey);
  const address = parseAddress(url, insecureHttp);
  const deadlines = { ...defaultDeadlines, ...options.deadlines };
  const limits = { ...defaultRetryLimits, ...options.retry };
  const transport = options.transport ?? httpTransport(address, options, deadlines.connect);
  const closing = new AbortController();
  const numbering: PageNumbering = {};
  const parts: CallParts = {
    address,
    transport,
    apiKey,
    quote: quoteWithout(apiKey),
    keys: options.keys ?? new KnownKeys([['the API key', apiKey]]),
    clock,
    random,
    note: once(options.note),
    deadlines,
    limits,
    budget: retryBudget(limits.budget),
    closing: closing.signal,
  };
  const readPage = async <Parts extends RunParts>(
    request: RequestOf<'evals.runs.list'>,
    options: PageOptions<Parts> = {},
  ) => (await call(parts, 'evals.runs.list', request, options, options)) as ReadPage<Parts>;
  return {
    origin: transport.origin,
    async call<Name extends OperationName>(name: Name, request: RequestOf<Name>, options: CallOptions = {}) {
      return (await call(parts, name, request, options)) as ResponseOf<Name>;
    },
    sendEvidence: async (file, options = {}) =>
      (await call(parts, 'evals.evidence', {}, { ...options, file })) as ResponseOf<'evals.evidence'>,
    offers: (operation, { signal } = {}) => askOffer(parts, operation, signal),
    page: (request, options) => pageOf((asked) => readPage(asked, options), request, numbering),
    runs: (filter, options) => listRuns((request) => readPage(request, options), filter, numbering),
    async [Symbol.asyncDispose]() {
      closing.abort(closed(transport.origin));
      await transport[Symbol.asyncDispose]();
    },
  };
}

/** Passes each message on only the first time: pages are read again and again. */
function once(note: ((message: string) => void) | undefined): (message: string) => void {
  const noted = new Set<string>();
  return (message) => {
    if (!note || noted.has(message) || noted.size >= serviceAnswers.count.passedOver) return;
    noted.add(message);
    note(message);
  };
}

function closed(origin: string): OffsiteError {
  return infrastructureError('CLIENT_CLOSED', `the client of ${origin} was closed`);
}
