import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/**
 * What both doubles of the Eval Service stand on: plain HTTP. The doubles are written from the specification
 * alone and share no code with `src/`, so that they show what the client relies on beyond the specification.
 * The strict one (`strict.ts`) takes only what the specification shows, and answers with the least. The
 * sloppy one (`sloppy.ts`) takes anything, and answers as loosely as the specification leaves room for.
 */

export interface Asked {
  operation: string;
  headers: IncomingHttpHeaders;
  /** The body as text. */
  body: string;
}

export interface Answered {
  status: number;
  /** JSON, unless it is a string. */
  body?: unknown;
  headers?: Record<string, string>;
}

export interface Listening extends AsyncDisposable {
  url: string;
  /** Operations asked for, in order. */
  asked: string[];
}

/**
 * Serves `POST /v1/<operation>` on this machine. If pages count from 1, disposing throws if a page below that
 * was asked for.
 */
export async function listen(
  answer: (asked: Asked) => Answered | Promise<Answered>,
  { pagesFrom }: { pagesFrom: 0 | 1 },
): Promise<Listening> {
  const asked: string[] = [];
  const pages: unknown[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const [, operation] = /^\/v1\/([\w.]+)$/.exec(request.url ?? '') ?? [];
    if (operation === undefined || request.method !== 'POST') {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ _tag: 'NotFound', message: 'There is no such operation.' }));
      return;
    }
    asked.push(operation);
    if (operation === 'evals.runs.list') pages.push(JSON.parse(body).page);
    const said = await answer({ operation, headers: request.headers, body });
    const isText = typeof said.body === 'string';
    response.writeHead(said.status, {
      ...(said.body !== undefined && { 'content-type': isText ? 'text/plain' : 'application/json' }),
      ...said.headers,
    });
    response.end(said.body === undefined || isText ? said.body : JSON.stringify(said.body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      if (pagesFrom === 1 && pages.includes(0)) throw new Error('page 0 was asked for: pages count from 1');
    },
  };
}

/** What a double recorded of a trial. */
export interface Recorded {
  run: string;
  caseId: string;
  variantIndex: number;
  ordinal: number;
  passed: unknown;
}

/** A double as the tests see it. */
export interface Double extends Listening {
  /** What the command line needs to use it. */
  env: { OFFSITE_URL: string; OFFSITE_API_KEY: string };
  /** What started each batch, as far as it was told. */
  triggers: unknown[];
  /** Each report that was recorded, in order. */
  recorded: Recorded[];
  /** Starts a batch as somebody else would. */
  start(request: unknown): Promise<void>;
  /** Asked before a report is recorded, and again before that is answered: a test may wait in it. */
  onReport: ((when: 'before' | 'after') => Promise<void> | void) | undefined;
}

/** What was recorded, in an order that does not depend on time: `case variant ordinal passed`. */
export function slots({ recorded }: Double): string[] {
  return recorded
    .map(({ caseId, variantIndex, ordinal, passed }) => `${caseId} ${variantIndex} ${ordinal} ${passed}`)
    .toSorted();
}
