import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ContainerSpec } from '../../engine/container/container-spec.ts';
import type { Container } from '../../engine/container.ts';

/** The gateway's end inside a sandbox's network: a sidecar that listens on the sandbox's 127.0.0.1. */
export interface Relay extends AsyncDisposable {
  /**
   * `http://127.0.0.1:PORT`, as the sandbox sees it: the models' origin (without `/v1`), and the allow-list's
   * proxy.
   */
  readonly origin: string;
  /**
   * Makes the sandbox in the relay's network and starts it, each as soon as that can be; for a relay that has
   * a network of its own, and once. Rejects as `make` and the sandbox's start do, and with {@link
   * Relay.lost}'s reason where there is no relay.
   */
  startSandbox(
    make: (network: ContainerSpec['network']) => Promise<Container>,
    signal: AbortSignal,
  ): Promise<Container>;
  /** Resolves once the sandbox can connect; rejects where the relay did not come up. */
  readonly ready: Promise<void>;
  /**
   * Aborts when the relay is lost and could not be restarted; its reason is an infrastructure {@link
   * OffsiteError}.
   */
  readonly lost: AbortSignal;
}

/** Below the ports that clients are given, so that no connection of the sandbox's can have taken it. */
export const relayPort = 19734;

/**
 * Serves what one sandbox asks for, as Node's own HTTP server hands it on. What a method throws, or what it
 * returns rejects with, is a defect, and ends the relay's session.
 */
export interface RelayHandler {
  /**
   * A request for a model (`url` is a path) or through the proxy (an absolute URL). A client that goes away
   * closes the response before it has finished. To break an answer off so that the client sees it, destroy
   * the response with an error. A request body that is not read stops the client.
   */
  request(request: IncomingMessage, response: ServerResponse): unknown;
  /**
   * A CONNECT to `url` (`host:port`). Its answer is written to `client`, which then carries the tunnel;
   * `first` came along already.
   */
  connect(request: IncomingMessage, client: Duplex, first: Buffer): unknown;
}
