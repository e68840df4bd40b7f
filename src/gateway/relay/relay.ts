import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';

/** The gateway's end inside a sandbox's network: a sidecar that listens on the sandbox's 127.0.0.1. */
export interface Relay extends AsyncDisposable {
  /** `http://127.0.0.1:PORT`, as the sandbox sees it: the models' origin (without `/v1`), and the allow-list's proxy. */
  readonly origin: string;
  /**
   * Makes the sandbox in the relay's network and starts it, each as soon as that can be; for a relay that has a network of its own, and once.
   * Rejects as `make` and the sandbox's start do, and with {@link Relay.lost}'s reason where there is no relay.
   */
  startSandbox(
    make: (network: ContainerSpec['network']) => Promise<Container>,
    signal: AbortSignal,
  ): Promise<Container>;
  /** Resolves once the sandbox can connect; rejects where the relay did not come up. */
  readonly ready: Promise<void>;
  /** Aborts when the relay is lost and could not be restarted; its reason is an infrastructure {@link OffsiteError}. */
  readonly lost: AbortSignal;
}

/**
 * Serves one request of a sandbox. Headers are the client's own without those of its connection, and without `host`; what the request
 * is for, the relay alone says:
 *
 * - `:method` CONNECT: a tunnel to `:authority` (`host:port`) through the proxy. Accepted with 200, it carries bytes both ways.
 * - `x-offsite-proxy: 1`: a plain request through the proxy, `http://` + `:authority` + `:path`.
 * - else a request for a model, by `:path`; its `:authority` is always `model`.
 *
 * A client that goes away aborts the stream (`aborted`, then `close`; an `error` needs no listener). To break an answer off so that the client
 * sees it, destroy the stream with an error: a mere `close()` after `respond` would look like a whole answer. A request body that is not
 * read stops the client.
 */
export type RelayHandler = (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void;
