/** What the service reads of a request: a `Request`, or what a client in this process sends. */
export interface ServiceRequest extends Pick<Request, 'method' | 'url' | 'signal' | 'body' | 'arrayBuffer'> {
  headers: Pick<Headers, 'get'>;
}

export interface ServiceAnswer {
  status: number;
  headers: Record<string, string>;
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>;
}
