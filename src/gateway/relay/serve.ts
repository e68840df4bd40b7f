import { performServerHandshake, type ServerHttp2Session } from 'node:http2';
import type { Duplex } from 'node:stream';
import type { RelayHandler } from './relay.ts';

/**
 * Requests of one sandbox under way at a time. Twice what its relay has connections for: a request counts here until its handler is done
 * with it, there only until its client is, and one above the limit would be refused.
 */
const parallelRequests = 1024;
/** Bytes on their way to a request's handler that does not read. */
const requestWindow = 256 * 1024;
const noLimit = 2 ** 30;

/**
 * This process's end of a sidecar's standard streams: calls `handler` for each request. The session ends with the streams, and then destroys
 * the requests in flight.
 */
export function serveRelay(stdio: Duplex, handler: RelayHandler): ServerHttp2Session {
  const session = performServerHandshake(stdio, {
    settings: { maxConcurrentStreams: parallelRequests, initialWindowSize: requestWindow },
    maxHeaderListPairs: 1024,
    // Node would end the session above these, and one hostile client with it all others. Megabytes; windows bound memory.
    maxSessionMemory: 4096,
    maxSessionInvalidFrames: noLimit,
    maxSessionRejectedStreams: noLimit,
    streamResetBurst: noLimit,
    streamResetRate: noLimit,
  });
  session.setLocalWindowSize(noLimit);
  session.on('stream', (stream, headers) => {
    // Always followed by 'close', which is what a handler looks at.
    stream.on('error', () => undefined);
    handler(stream, headers);
  });
  session.on('error', () => session.destroy());
  stdio.on('error', () => session.destroy());
  stdio.on('close', () => session.destroy());
  return session;
}
