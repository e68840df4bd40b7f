import type { Clock } from '../../base/clock.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { Redactor } from '../../redaction/redactor.ts';
import { listen } from '../../service/listen.ts';
import { Access, createApplication } from './application.ts';
import { pageFiles } from './page-files.ts';

export interface ViewerOptions {
  ledger: Ledger;
  redactor: Redactor;
  clock: Clock;
  /** 0 for any free port. */
  port?: number;
}

export interface Viewer extends AsyncDisposable {
  /** The address to open, with the token in its fragment, which no browser sends to a server. */
  url: string;
  /** Resolves when somebody uses the address for the first time. */
  used: Promise<void>;
}

/** Milliseconds that requests in flight get when the viewer ends. */
const graceMs = 500;

/**
 * Serves the pages that show a ledger, on loopback only. It changes nothing in the ledger but what lists show
 * of trials, which it stores where it is missing. Throws an `input` error if it cannot listen on the port.
 */
export async function openViewer({ ledger, redactor, clock, port = 0 }: ViewerOptions): Promise<Viewer> {
  const access = new Access();
  const closing = new AbortController();
  const application = createApplication({
    ledger,
    redactor,
    files: await pageFiles(),
    access,
    port: () => listener.port,
    closing: closing.signal,
  });
  const fetch = async (request: Request) => application.fetch(request);
  const listener = await listen(fetch, { host: '127.0.0.1', port }, clock);
  return {
    url: `${listener.url}/#token=${access.token}`,
    used: access.used,
    async [Symbol.asyncDispose]() {
      closing.abort();
      await listener.close(graceMs);
    },
  };
}
