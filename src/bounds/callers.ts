import { bytes, channelOf, characters, GiB, KiB, MiB, milliseconds, times } from './channel.ts';

/** Bounds for clients that connect to this process. */
const channel = channelOf('a caller');

export const serviceRequests = channel({
  over: "requests to `offsite serve`, and to `offsite view` and a daemon's `--listen`, which read no bodies",
  bytes: {
    head: bytes(16 * KiB, 'the line and the headers of a request'),
    // Nobody else is served while a text is parsed or written to the disk, which takes about 6 ms for a MiB.
    body: bytes(8 * MiB, 'the body of a request that writes'),
    query: bytes(256 * KiB, 'the body of a request that only reads'),
    held: bytes(
      32 * MiB,
      'the bodies of the requests of a key in flight, and 4 MiB for each answer of more than 1 MiB; further ones are refused',
    ),
    step: bytes(
      32 * KiB,
      'a body that is read in one step; for a larger one, others are served between steps',
    ),
    // Each run of a start is in three lists that are sorted by ids.
    id: characters(200, 'an id, or the name of a suite or a case'),
    tag: characters(200, 'a tag of a case'),
    prompt: characters(512 * KiB, 'a prompt, which each run of a list repeats'),
    variables: characters(MiB, 'the variables of a case, as JSON'),
    written: bytes(MiB, 'texts of cases that are written in one step'),
    number: characters(1_000, 'a number in a body'),
    name: characters(200, 'a name in an answer that refuses a request'),
    setup: characters(64 * MiB, 'the texts of a case after their variables are replaced'),
  },
  time: {
    head: milliseconds(20_000, 'until all headers have arrived'),
    request: milliseconds(120_000, 'until the whole request has arrived'),
    idle: milliseconds(30_000, 'between two requests'),
    step: milliseconds(5, 'building an answer; then others are served before its next part'),
    start: milliseconds(3_600_000, 'writing the runs of a start; then what is there of it is removed'),
    close: milliseconds(5_000, 'for requests in flight when the service ends'),
    // Ten times as long as idle daemons wait between two polls, by default.
    restored: milliseconds(
      10 * 60_000,
      'after a backup took its place, without new claims of what is in it: results are reported again first',
    ),
  },
  count: {
    // Well below the usual limit on open files of a process.
    connections: times(512, 'connections at a time; further ones are closed'),
    requests: times(256, 'requests of a key in flight; further ones are refused'),
    manifest: times(20_000, 'entries of the manifest of a validator'),
    tags: times(64, 'tags of a case'),
    channels: times(100, 'channels of a prompt'),
    // 100 runs take 3 ms; with those of a whole start, others would wait 80 ms.
    runs: times(100, 'runs of a start that are written in one step'),
    cases: times(50, 'cases of a list that are read in one step'),
    steps: times(
      16,
      'small requests of a key that are answered before other keys are served; fewer if they take long',
    ),
    // What the parser makes of a large body can be ten times as large.
    read: times(2, 'large bodies that are read at a time; further ones wait'),
    // A list of 20,000 tests, or a trajectory of 25,000 commands.
    values: times(400_000, 'values of a body, with their names'),
    names: times(10_000, 'different names in a body'),
    // A body can have as many issues as values.
    issues: times(100, 'issues of a body in an answer'),
  },
});

export const reportedAmounts = channel({
  over: 'amounts of reported trials, which enter the sums of their runs',
  bytes: 'as every number of a request',
  time: 'as every request',
  count: {
    tokens: times(1e12, 'tokens of each kind'),
    costUsd: times(1e9, 'dollars'),
    commands: times(1e9, 'commands, and the number of an entry'),
    duration: times(366 * 24 * 3_600_000, 'milliseconds of each duration: a year'),
    year: times(2100, 'the year until which times are'),
  },
});

export const sentEvidence = channel({
  over: 'evidence that is sent to `offsite serve`; a process of its own reads it, with the bounds of evidence',
  bytes: {
    file: bytes(2 * GiB, 'a bundle, which goes to a temporary file'),
    found: bytes(64 * MiB, 'what the audit found, as JSON'),
    reason: characters(500, 'why a trial is not marked'),
  },
  time: { audit: milliseconds(10 * 60_000, 'an audit, after the bundle has arrived as a request does') },
  count: { audits: times(1, 'audits at a time; further ones are refused') },
});

export const controlRequests = channel({
  over: "requests to the daemon's control socket, which only its owner may open; their bodies are not read",
  bytes: { head: bytes(16 * KiB, 'the line and the headers of a request') },
  time: { request: milliseconds(10_000, 'for a whole request') },
  count: { connections: times(64, 'connections at a time; further ones are closed') },
});
