import type { Wire } from '../suite/model-config.ts';

/** One request to a model, as its wire has it. */
export interface UpstreamRequest {
  wire: Wire;
  method: string;
  /** Path and query below the model's base URL: `/chat/completions`, `/responses`, `/messages?beta=true`. */
  path: string;
  /** Lower-case names, end-to-end headers only; no credential. */
  headers: Record<string, string>;
  body: Buffer;
}

export interface UpstreamAnswer {
  status: number;
  /** Lower-case names, end-to-end headers only. */
  headers: Record<string, string | string[]>;
  /** The body's bytes as they come; ends or throws as the upstream did. */
  body: AsyncIterable<Uint8Array>;
  /** What its decoder holds, where it came compressed. */
  decoderBytes?: number | undefined;
}

/** Where a model's answers come from: an HTTP API, or a file of scripted turns. */
export interface Upstream {
  /**
   * Resolves with the beginning of the answer. Rejects where none came; an abort of `signal` ends the request
   * and its body.
   */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamAnswer>;
}
