import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
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
   * Creates the sandbox in the relay's network and starts it, each as early as possible; creates it twice if
   * the engine refused to start the relay at first. Call it once, and only for a relay with its own network.
   * Rejects as `make` and the sandbox's start do, or with {@link Relay.lost}'s reason if there is no relay.
   */
  startSandbox(
    make: (network: ContainerSpec['network']) => Promise<Container>,
    signal: AbortSignal,
  ): Promise<Container>;
  /** Resolves once the sandbox can connect; rejects if the relay did not start. */
  readonly ready: Promise<void>;
  /**
   * Aborts if the relay is lost and cannot be restarted; its reason is an infrastructure {@link
   * OffsiteError}.
   */
  readonly lost: AbortSignal;
}

/** Below the range of ports that clients get, so that no connection of the sandbox can occupy it. */
export const relayPort = 19734;

/**
 * Serves the requests of one sandbox, as Node's HTTP server passes them on. If a method throws or its promise
 * rejects, that is a defect and ends the relay's session.
 */
export interface RelayHandler {
  /**
   * A request for a model (`url` is a path) or through the proxy (an absolute URL). If the client
   * disconnects, the response closes before it finishes. To break off an answer visibly, destroy the response
   * with an error. While a request's body is not read, the client must wait.
   */
  request(request: IncomingMessage, response: ServerResponse): unknown;
  /**
   * A CONNECT to `url` (`host:port`). Write the answer to `client`, which then carries the tunnel, or refuse
   * with {@link answerLast}; `first` holds bytes that already arrived.
   */
  connect(request: IncomingMessage, client: Duplex, first: Buffer): unknown;
}

/**
 * Gives a client the last answer on its connection, to which no server writes any more. `said` is a line of
 * text.
 */
export function answerLast(client: Duplex, status: number, said: string): void {
  const body = `${said}\n`;
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'content-type: text/plain; charset=utf-8',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  client.end(`${head.join('\r\n')}\r\n\r\n${body}`);
  dropRest(client);
}

/**
 * Drops what a client sends after its last answer: to read that as requests would ask for more, and not to
 * read it would hide that the client closes.
 */
export function dropRest(client: Duplex): void {
  // Node's HTTP server reads a socket below its stream, until there is another listener.
  client.on('data', () => undefined).removeAllListeners('data');
  client.resume();
  // If the server had stopped reading, the stream does not know that.
  client._read(0);
}
