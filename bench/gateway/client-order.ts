/** What client.ts does. */
export interface ClientOrder {
  /** Without `/v1`. */
  origin: string;
  model: string;
  token: string;
  calls: number;
  parallel: number;
  streams: number;
  bodies: number;
  bodyBytes: number;
}

/** What it measured: milliseconds, one number per request. */
export interface ClientTimes {
  oneMs: number[];
  parallelMs: number[];
  firstByteMs: number[];
  downMs: number[];
  upMs: number[];
}
