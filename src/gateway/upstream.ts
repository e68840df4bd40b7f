import type { ReplayedExchange } from '../record/model-account.ts';
import type { Wire } from '../suite/model-config.ts';

/** One request to a model, in the form of its wire. */
export interface UpstreamRequest {
  wire: Wire;
  method: string;
  /** Path and query below the model's base URL: `/chat/completions`, `/responses`, `/messages?beta=true`. */
  path: string;
  /** Lower-case names, only end-to-end headers; no credential. */
  headers: Record<string, string>;
  body: Buffer;
  /**
   * Whether its sender says in the conversation which form the answer needs, and checks it. Then the option
   * that asks for this form may be left out.
   */
  checksForm?: boolean;
}

export interface UpstreamAnswer {
  status: number;
  /** Lower-case names, only end-to-end headers. */
  headers: Record<string, string | string[]>;
  /** The body's bytes as they arrive; ends or throws as the upstream does. */
  body: AsyncIterable<Uint8Array>;
  /** Bytes that the decoder holds, if the body is compressed. */
  decoderBytes?: number | undefined;
  /** Paths of the request that were left out, because the server does not accept them. */
  leftOut?: readonly string[] | undefined;
  /** How the server refused the same request with more in it, before it gave this answer. */
  refusals?: readonly string[] | undefined;
  /** Set if a script had no turn for a conversation that began. */
  unscripted?: true | undefined;
  /** Set if a recorded exchange gave it. */
  replayed?: ReplayedExchange | undefined;
}

/** The source of a model's answers: an HTTP API, or a file of scripted turns. */
export interface Upstream {
  /**
   * Resolves with the beginning of the answer. Rejects if none arrives. An abort of `signal` ends the request
   * and its body.
   */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamAnswer>;
}
