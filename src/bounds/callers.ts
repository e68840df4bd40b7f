import { bytes, channel, KiB, MiB, milliseconds, times } from './channel.ts';

/** What those send who connect to this process. */

export const serviceRequests = channel({
  sender: 'a caller',
  over: "requests to `offsite serve`, and to a daemon's `--listen`, which reads no bodies",
  bytes: {
    head: bytes(16 * KiB, 'the line and the headers of a request'),
    body: bytes(32 * MiB, 'the body of a request'),
    setups: bytes(64 * MiB, "the setups of a batch's runs, together"),
  },
  time: {
    head: milliseconds(20_000, 'until all headers are there'),
    request: milliseconds(120_000, 'until the whole request is there'),
    idle: milliseconds(30_000, 'between two requests'),
    close: milliseconds(5_000, 'for requests under way when the service ends'),
  },
  count: {
    // Well below the files that a process may usually have open.
    connections: times(512, 'connections at a time; what comes above them is closed'),
    // So that no check after the parser's can be made to overflow the stack or fill the memory.
    depth: times(64, 'levels of a body'),
    listEntries: times(100_000, 'entries of a list in a body'),
    values: times(500_000, 'values of a body'),
    // A body can have as many as it has values.
    issues: times(100, 'issues of a body in an answer'),
  },
});

export const controlRequests = channel({
  sender: 'a caller',
  over: "requests to the daemon's control socket, which only its owner may open; their bodies are not read",
  bytes: { head: bytes(16 * KiB, 'the line and the headers of a request') },
  time: { request: milliseconds(10_000, 'for the whole of a request') },
  count: { connections: times(64, 'connections at a time; what comes above them is closed') },
});
