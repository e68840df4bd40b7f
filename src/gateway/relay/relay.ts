import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';

/** The gateway's end inside a sandbox's network: a sidecar that listens on the sandbox's 127.0.0.1. */
export interface Relay extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`, as the sandbox sees it: the models' origin (without `/v1`), and the allow-list's proxy. */
  readonly origin: string;
  /** Resolves once the sandbox can connect; rejects where the relay did not come up. */
  readonly ready: Promise<void>;
  /** Aborts when the relay is lost and could not be restarted; its reason is an infrastructure {@link OffsiteError}. */
  readonly lost: AbortSignal;
}

export type RelayHandler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
