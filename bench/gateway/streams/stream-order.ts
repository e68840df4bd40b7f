/** What stream-client.ts asks for: the same streamed answer, `count` times, one after the other. */
export interface StreamOrder {
  origin: string;
  /** With its query. */
  path: string;
  token: string;
  body: string;
  count: number;
}

/** What it measured: milliseconds since the request was sent, one number per answer. */
export interface StreamTimes {
  firstByteMs: number[];
  endMs: number[];
}
