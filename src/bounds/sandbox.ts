import { bytes, channel, characters, KiB, MiB, milliseconds, partOfHeap, times } from './channel.ts';

/** What the sandbox of a harness sends. The deadline of its phase ends what has no time of its own here. */

export const relayTraffic = channel({
  sender: 'the sandbox',
  over: 'connections to its relay, which come as one HTTP/2 session over the standard streams of the relay',
  bytes: {
    requestHead: bytes(32 * KiB, 'the line and the headers of a request'),
    // With all connections of a relay that is 64 MiB.
    unreadRequest: bytes(128 * KiB, 'of a connection, on their way to a handler that does not read'),
    unreadAnswer: bytes(256 * KiB, 'of a connection, on their way to a client that does not read'),
    // It takes about 35 MiB; hostile clients can make it ten times as much, and are not to kill it.
    relayMemory: bytes(512 * MiB, "the relay's container"),
    relayWords: characters(4096, 'what a relay says of its end'),
  },
  time: {
    // Node's own start, which a busy machine may make long. A request has no time of its own: a model may
    // take long for an answer.
    relayStart: milliseconds(60_000, 'until a relay listens'),
  },
  count: {
    // Clients that send or ask for much and then stall make the relay hold some 300 KB each. So many fit into
    // its memory.
    relayConnections: times(512, 'connections at a time, as the relay counts them'),
    // Twice as many: one counts here until all is done with it.
    connections: times(1024, 'connections at a time, as the gateway counts them'),
    // One connection can send many ahead.
    requests: times(1024, 'requests at a time'),
    headers: times(256, 'headers of a request'),
    // One that dies takes the requests in flight with it; harnesses try those again.
    relays: times(3, 'relays of one sandbox, one after another'),
  },
});

export const modelRequests = channel({
  sender: 'the sandbox',
  over: 'requests to a model, which the gateway reads, and answers that it reads',
  bytes: {
    // Held until it is over, so that it can be sent again. With a small heap it is less.
    body: bytes(80 * MiB, 'the body of a request'),
    held: bytes(256 * MiB, 'requests and answers of all trials together'),
    heldOfHeap: partOfHeap(1 / 4, 'the same, with a small heap'),
    // The more go out at once, the less each costs.
    answerAhead: bytes(128 * KiB, 'of an answer, waiting for its client'),
  },
  time: {
    roomWait: milliseconds(30_000, 'that a request or an answer waits for room'),
    // Its model's place, which it holds meanwhile, is wanted by others. Far less than `answerAhead` is read
    // at once, so this also is the least speed: some 11 KB/s.
    unreadAnswer: milliseconds(12_000, 'that an answer may stand unread'),
    // Those of a session that is closed are over at once.
    account: milliseconds(30_000, 'that the account waits for requests in flight'),
  },
  count: {
    // Each is in the record, which is in memory until the trial is over.
    exchanges: times(10_000, 'requests to models of one role in an attempt'),
    refusals: times(1000, 'refused requests in the record'),
    // More than any client nests or sends, and less than takes much memory to read.
    depth: times(256, 'levels of a JSON body'),
    values: times(1_000_000, 'values of a JSON body'),
    // A piece of one byte takes hundreds.
    answerPieces: times(64, 'pieces of an answer, waiting for its client'),
  },
});

export const hostConnections = channel({
  sender: 'the sandbox',
  over: 'connections through the proxy to allowed hosts, and what these hosts send back',
  bytes: { held: bytes(256 * KiB, 'of a connection, in both directions') },
  time: { reach: milliseconds(30_000, 'to look a name up and to connect') },
  count: { recorded: times(10_000, 'connections in the record') },
});

export const commandOutput = channel({
  sender: 'the sandbox',
  over: 'standard output and error of commands, over the engine',
  bytes: {
    kept: bytes(1 * MiB, 'each stream, its head and its tail, where a command names no other cap'),
    // With a small heap, 1/32 of that.
    script: bytes(64 * MiB, "the outputs of a script's steps together"),
    // A line for each process of a sandbox is the most that one prints.
    ownCommand: bytes(4 * MiB, 'a small command of ours'),
    // A mark is far shorter than this; a longer "line" after the secret is no mark of ours.
    mark: bytes(4096, "a mark between the steps of a script's output"),
  },
  time: {
    // They either answer quickly or the container is past use.
    ownCommand: milliseconds(20_000, 'a small command of ours'),
    userNames: milliseconds(60_000, "the look at the image's user"),
    workspaceCopy: milliseconds(120_000, 'unpacking the workspace in a fresh sandbox'),
    // Two seconds where a child of it holds the stream.
    streamEnd: milliseconds(4_000, 'until the stream of a killed process ends'),
  },
  count: 'frames and lines are passed on one by one, and none is kept',
});

export const processEnds = channel({
  sender: 'the sandbox',
  over: 'processes that are to end, and what the engine tells of their ends',
  bytes: 'the disk and the memory of a sandbox are bounded by its configuration',
  time: {
    quickDeath: milliseconds(100, 'between two looks at what was killed'),
    // One with gigabytes to give back needs this long at most.
    death: milliseconds(3_000, 'until killed processes are gone; then the container is restarted'),
    // An event takes the way of containerd, and so may come a little after the end of the exec.
    memoryEvent: milliseconds(2_000, "until the engine's event of a kill for memory is there"),
    containerNoted: milliseconds(2_000, "until the engine notes a container's end"),
    // A look costs the engine a walk over what the container wrote: 4 ms for large files, 90 ms for 20,000.
    diskLook: milliseconds(1_000, 'between two looks at what was written'),
  },
  count: { aloneLooks: times(6, 'looks at the count of processes before they are killed') },
});

export const harnessLines = channel({
  sender: 'the sandbox',
  over: 'what a harness prints: lines of JSON',
  bytes: {
    // CLIs put whole outputs of commands into one.
    line: bytes(32 * MiB, 'a line'),
    // With a small heap, 1/64 of that.
    told: characters(16 * MiB, 'commands, tools and messages of a conversation together'),
    lastMessage: characters(10_000, 'what is kept of what a CLI says of its end'),
    kept: bytes(64 * KiB, 'each stream as it was printed, once it is read'),
    note: characters(500, 'a line that is no JSON'),
    lastWords: characters(1_000, 'the end of standard error, in a message'),
    // Some CLIs say what is wrong first and then print their help.
    shownHead: characters(500, 'the beginning of a stream, in a result'),
    shownTail: characters(1_500, 'the end of a stream, in a result'),
  },
  time: "the harness's own deadline",
  count: {
    notes: times(20, 'lines that are no JSON'),
  },
});

export const derivedCommands = channel({
  sender: 'the sandbox',
  over: 'commands that are read off requests to a model',
  bytes: {
    output: characters(1 * MiB, "a command's output"),
    all: characters(8 * MiB, 'all commands of a trial with their outputs'),
  },
  time: 'read as the requests pass',
  count: { commands: times(10_000, 'commands of a trial') },
});

export const engineAnswers = channel({
  sender: 'the sandbox',
  over: 'answers of the engine that tell of a sandbox: its processes, its changes',
  bytes: {
    answer: bytes(64 * MiB, 'an answer that is read as a whole'),
    object: bytes(64 * KiB, 'an object of a list that is read one by one'),
  },
  time: "the engine's request time-outs",
  count: 'lists are read one by one; who keeps what they tell has a bound of its own',
});

export const archives = channel({
  sender: 'the sandbox',
  over: 'archives of its files, over the engine; never unpacked on the host',
  bytes: {
    // More than any names and attributes take; a header that claims more is not believed.
    nameRecords: bytes(4 * MiB, "an entry's name and attributes"),
  },
  time: {
    // Enough for gigabytes on a slow disk; the caller's signal may end a transfer sooner.
    transfer: milliseconds(15 * 60_000, 'a transfer'),
  },
  count: 'entries are read one by one; who keeps what they tell has a bound of its own',
});

export const workspaceFiles = channel({
  sender: 'the sandbox',
  over: "files of the workspace: its state before and after, and the case's artifacts",
  bytes: {
    // Beyond these two, reading it all costs more than the engine's own list of changes, which walks the
    // whole image.
    whole: bytes(48 * MiB, 'a workspace that is read as a whole'),
    artifacts: bytes(512 * MiB, 'all artifacts of a trial'),
  },
  time: {
    // An engine gives some 150 MB a second, so that this is far more than artifacts need.
    reading: milliseconds(5 * 60_000, 'reading the workspace'),
  },
  count: {
    entries: times(20_000, 'entries of a workspace that is read as a whole'),
    artifacts: times(1000, 'artifacts of a trial'),
  },
});

export const pathLists = channel({
  sender: 'the sandbox',
  over: 'paths of changed files',
  bytes: {
    // A kit is some megabytes, a listing's paths are some hundred thousand.
    listing: bytes(64 * MiB, 'a listing that is printed inside'),
    // With a small heap, 1/32 of that.
    list: characters(64 * MiB, 'a list of paths'),
    // As long as Linux takes one, less what the layer's own folder may have.
    path: bytes(3500, 'a path in a layer; a deeper one counts as its folder'),
    // Matching takes a time that grows faster than the path.
    matched: characters(1024, 'a path that is compared with globs'),
    compared: bytes(64 * MiB, 'a file whose content is compared'),
    kept: characters(1 * MiB, 'a list of paths in a record'),
  },
  time: { listing: milliseconds(120_000, 'a listing that is printed inside') },
  count: {
    kept: times(10_000, 'paths of a list in a record'),
    outside: times(1000, 'paths outside the workspace in a result'),
    matchedFolders: times(64, 'folders in a path that is compared with globs'),
    // One round trip each. What is beyond counts as unexplained.
    compared: times(5000, 'paths whose contents are compared'),
    comparedAtATime: times(8, 'of these at a time'),
    shown: times(20, 'paths in a message'),
  },
});

export const reportedOutput = channel({
  sender: 'the sandbox',
  over: 'outputs of commands, on their way to the service',
  // Services refuse what is far larger; ours above 32 MiB of JSON.
  bytes: { all: characters(4 * MiB, 'all outputs in one report') },
  time: 'the calls of the service are bounded',
  count: 'each output is cut to an equal share',
});
