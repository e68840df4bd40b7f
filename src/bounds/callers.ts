import { bytes, channel, characters, KiB, MiB, milliseconds, times } from './channel.ts';

/** Bounds for clients that connect to this process. */

export const serviceRequests = channel({
  sender: 'a caller',
  over: "requests to `offsite serve`, and to `offsite view` and a daemon's `--listen`, which read no bodies",
  bytes: {
    head: bytes(16 * KiB, 'the line and the headers of a request'),
    body: bytes(32 * MiB, 'the body of a request that writes'),
    // Its values are parsed and checked in some tens of milliseconds, during which nobody else is served.
    query: bytes(MiB, 'the body of a request that only reads'),
    setup: characters(64 * MiB, 'the texts of a case after their variables are replaced'),
  },
  time: {
    head: milliseconds(20_000, 'until all headers have arrived'),
    request: milliseconds(120_000, 'until the whole request has arrived'),
    idle: milliseconds(30_000, 'between two requests'),
    close: milliseconds(5_000, 'for requests in flight when the service ends'),
  },
  count: {
    // Well below the usual limit on open files of a process.
    connections: times(512, 'connections at a time; further ones are closed'),
    // A body can have as many issues as values.
    issues: times(100, 'issues of a body in an answer'),
  },
});

export const controlRequests = channel({
  sender: 'a caller',
  over: "requests to the daemon's control socket, which only its owner may open; their bodies are not read",
  bytes: { head: bytes(16 * KiB, 'the line and the headers of a request') },
  time: { request: milliseconds(10_000, 'for a whole request') },
  count: { connections: times(64, 'connections at a time; further ones are closed') },
});
