import { bytes, channelOf, characters, GiB, KiB, MiB, milliseconds, partOfHeap, times } from './channel.ts';

/** Bounds for what the sandbox of a harness sends. If no time is given, the deadline of the phase applies. */
const channel = channelOf('the sandbox');

export const relayTraffic = channel({
  over: 'connections to its relay, which arrive over a socket that the relay shares, or as one HTTP/2 session over the engine',
  bytes: {
    requestHead: bytes(32 * KiB, 'the line and the headers of a request'),
    // With all connections of a relay, that is 64 MiB.
    unreadRequest: bytes(128 * KiB, 'of a connection, on their way to a handler that does not read'),
    unreadAnswer: bytes(256 * KiB, 'of a connection, on their way to a client that does not read'),
    // A relay takes about 35 MiB. Hostile clients can make it take ten times as much, which must not kill it.
    relayMemory: bytes(512 * MiB, "the relay's container"),
    relayWords: characters(4096, "a relay's message about its end"),
  },
  time: {
    // Starting Node may take long on a busy machine. A request has no time limit, because a model may take
    // long to answer.
    relayStart: milliseconds(60_000, 'until a relay listens'),
  },
  count: {
    // Clients that send or ask for much and then stall make the relay hold about 300 KB each. This many fit
    // into its memory.
    relayConnections: times(512, 'connections at a time, counted by the relay'),
    // Twice as many, because the gateway counts a connection until it has finished all work on it.
    connections: times(1024, 'connections at a time, counted by the gateway'),
    // One connection can send many requests before it gets answers.
    requests: times(1024, 'requests at a time'),
    headers: times(256, 'headers of a request'),
    // A relay that dies ends the requests in flight; harnesses retry them.
    relays: times(3, 'relays of one sandbox, one after another'),
  },
});

export const modelRequests = channel({
  over: 'requests to a model, and answers to them, that the gateway reads',
  bytes: {
    // Held until the exchange has ended, so that it can be sent again. With a small heap, less.
    body: bytes(80 * MiB, 'the body of a request'),
    held: bytes(256 * MiB, 'requests and answers of all trials together'),
    heldOfHeap: partOfHeap(1 / 4, 'the same, with a small heap'),
    // The more bytes are sent at once, the less each byte costs.
    answerAhead: bytes(128 * KiB, 'of an answer, waiting for its client'),
  },
  time: {
    roomWait: milliseconds(30_000, 'that a request or an answer waits for memory'),
    // An unread answer holds one of the model's parallel requests, which others wait for. Chunks are far
    // smaller than `answerAhead`, so a client must read about `answerAhead` bytes in this time: at least 11
    // KB/s.
    unreadAnswer: milliseconds(12_000, 'that an answer may stand unread'),
    // Requests of a closed session end at once.
    account: milliseconds(30_000, "that a session's account waits for requests in flight"),
  },
  count: {
    // Each one is in the record, which is in memory until the trial ends.
    exchanges: times(10_000, 'requests to models of one role in an attempt'),
    refusals: times(1000, 'refused requests in the record'),
    // More than any client nests or sends, and little enough to read without much memory.
    depth: times(256, 'levels of a JSON body'),
    values: times(1_000_000, 'values of a JSON body'),
    losses: times(100, 'different things that a translation names as left out'),
    schemaLevels: times(20, 'levels of a schema that a scripted model fills in'),
    // A piece of one byte takes hundreds of bytes of memory.
    answerPieces: times(64, 'pieces of an answer, waiting for its client'),
  },
});

export const hostConnections = channel({
  over: 'connections through the proxy to allowed hosts, and what those hosts send back',
  bytes: { held: bytes(256 * KiB, 'of a connection, in both directions') },
  time: { reach: milliseconds(30_000, 'to look up a name and to connect') },
  count: { recorded: times(10_000, 'connections in the record') },
});

export const commandOutput = channel({
  over: 'standard output and error of commands, over the engine',
  bytes: {
    kept: bytes(1 * MiB, 'each stream (its head and its tail), unless a command sets another limit'),
    // With a small heap, 1/32 of that.
    script: bytes(64 * MiB, "the outputs of a script's steps together"),
    // The longest output is a line for each process of a sandbox.
    ownCommand: bytes(4 * MiB, "a small command of Offsite's own"),
    unendedLine: characters(
      64 * KiB,
      'a line of a command in `offsite trial shell` that is printed before its end',
    ),
    // A mark is far shorter; a longer "line" after the secret is not a mark of Offsite.
    mark: bytes(4096, "a mark between the steps of a script's output"),
    // Linux starts any program with 128 KiB. The image has an environment too.
    alwaysFits: bytes(96 * KiB, 'arguments and environment of a command that need no second look'),
  },
  time: {
    // Such a command ends quickly, or the container is unusable.
    ownCommand: milliseconds(20_000, "a small command of Offsite's own"),
    userNames: milliseconds(60_000, "reading the image's user"),
    workspaceCopy: milliseconds(120_000, 'unpacking the workspace in a fresh sandbox'),
    // The end takes two seconds if a child process holds the stream open.
    streamEnd: milliseconds(4_000, 'until the stream of a killed process ends'),
  },
  count: 'frames and lines are passed on one by one and not kept',
});

export const serviceOutput = channel({
  over: 'what the services beside a sandbox print, and how their health checks answer',
  bytes: {
    log: bytes(1 * MiB, "a service's log: its head and its tail"),
    check: bytes(4096, 'what a health check prints'),
    shown: characters(2_000, "the end of a service's log, in a message"),
  },
  time: {
    poll: milliseconds(500, 'between two health checks'),
    health: milliseconds(15 * 60_000, 'until a service is healthy, whatever the case says'),
  },
  count: 'each service has one log',
});

export const startUps = channel({
  over: 'the program that the environment of a task starts: an entrypoint, or a command',
  bytes: {
    output: bytes(20 * KiB, 'shown, if it ends'),
  },
  time: {
    settle: milliseconds(10_000, 'until it waits; then the agent starts anyway'),
    look: milliseconds(1_000, 'the same for one that is a server, and that never only waits'),
    starting: milliseconds(60_000, 'on a machine that hangs'),
  },
  count: 'it is started once for a sandbox, and once for each step and for its tests',
});

export const processEnds = channel({
  over: 'processes that Offsite ends, and what the engine reports about their end',
  bytes: 'the disk and the memory of a sandbox are bounded by its configuration',
  time: {
    // A process that frees gigabytes needs at most this long.
    death: milliseconds(3_000, 'until killed processes are gone; then the container is restarted'),
    // An event comes through containerd, so it may arrive shortly after the end of the exec.
    memoryEvent: milliseconds(2_000, "until the engine's event of an out-of-memory kill has arrived"),
    containerNoted: milliseconds(2_000, "until the engine notes a container's end"),
    lossLook: milliseconds(2_000, 'between two looks whether a container that can end itself still runs'),
    // As long as any request to an engine: on a busy machine, it takes that long to start a process.
    firstStart: milliseconds(
      120_000,
      'until the first process of a container says that it started a command',
    ),
  },
  count: { aloneLooks: times(6, 'checks of the process count in a row') },
});

export const diskMeasure = channel({
  over: "blocks that it takes on the engine's disk; the disk limit itself is the sandbox's configuration",
  bytes: {
    // What a sandbox can write beyond its limit before it is ended: on a fast disk, 50 ms of writing.
    margin: bytes(64 * MiB, 'above the reserve, at which running trials are ended'),
    quiet: bytes(2 * MiB, 'that the disk may lose between two looks without counting as filling fast'),
    unnoticed: bytes(8 * MiB, 'that the disk loses between two measurements of a sandbox'),
    reserve: bytes(1 * GiB, "free for the engine's machine; a twentieth of the disk if that is less"),
  },
  time: {
    glance: milliseconds(20, "between two looks at the disk's free space"),
    quickGlance: milliseconds(2, 'the same, while the disk fills fast'),
    look: milliseconds(1_000, 'between two measurements of what a sandbox takes'),
    measure: milliseconds(60_000, 'for a measurement'),
  },
  count: 'a file with several names counts once',
});

export const harnessLines = channel({
  over: 'what a harness prints: lines of JSON',
  bytes: {
    // CLIs put the whole output of a command into one line.
    line: bytes(32 * MiB, 'a line'),
    // With a small heap, 1/64 of that.
    recorded: characters(16 * MiB, 'commands, tools and messages of a conversation together'),
    lastMessage: characters(10_000, "a CLI's last message, as it is kept"),
    kept: bytes(64 * KiB, 'each stream as it was printed, after it was read'),
    note: characters(500, 'a line that is not JSON'),
    version: characters(200, 'its version'),
    lastWords: characters(1_000, 'the end of standard error, in a message'),
    // Some CLIs first print what is wrong and then their help.
    shownHead: characters(500, 'the beginning of a stream, in a result'),
    shownTail: characters(1_500, 'the end of a stream, in a result'),
  },
  time: "the harness's own deadline",
  count: {
    notes: times(20, 'lines that are not JSON'),
  },
});

export const acpMessages = channel({
  over: 'messages of an agent that speaks the Agent Client Protocol, and the terminals that it asks for',
  bytes: {
    // The limits of a line, and of all that is kept, are those of other harnesses.
    unread: bytes(8 * MiB, 'messages to it that it does not read; then it is ended'),
    id: characters(200, 'an id of a request, a tool call or a session'),
    // Linux refuses a longer argument of a program.
    command: bytes(128 * KiB, 'a command with its arguments and variables'),
    text: characters(64 * KiB, 'a message, or a thought, that comes in pieces'),
  },
  time: {
    cancel: milliseconds(2_000, 'between its cancellation and its end'),
  },
  count: {
    requests: times(64, 'of its requests that wait for an answer; further ones are refused'),
    terminals: times(32, 'terminals that it has not released'),
    tools: times(1_000, 'tool calls at a time'),
  },
});

export const derivedCommands = channel({
  over: 'commands that are read from requests to a model',
  bytes: {
    output: characters(1 * MiB, "a command's output"),
    all: characters(8 * MiB, 'all commands of a trial with their outputs'),
  },
  time: 'they are read as the requests pass',
  count: { commands: times(10_000, 'commands of a trial') },
});

export const engineAnswers = channel({
  over: 'answers of the engine about a sandbox: its processes, its changes',
  bytes: {
    answer: bytes(64 * MiB, 'an answer that is read as a whole'),
    object: bytes(64 * KiB, 'an object of a list that is read one by one'),
    users: bytes(MiB, 'the file of users of a container, where the engine names users'),
    // It may quote a path, and paths may be thousands of folders deep.
    message: characters(500, "the engine's own words in a message"),
  },
  time: 'the time-outs of requests to the engine',
  count: 'entries of lists are read one by one; code that keeps them has its own bound',
});

export const archives = channel({
  over: 'archives of its files, over the engine; never unpacked on the host',
  bytes: {
    // More than any name and attributes need; a header that claims more is refused.
    nameRecords: bytes(4 * MiB, "an entry's name and attributes"),
    dense: bytes(64 * MiB, 'a file, or holes of files together, of which no map is looked for'),
    tarMemory: bytes(256 * MiB, 'the program that reads and writes files with holes'),
    tarWords: characters(500, 'what that program says about its end'),
  },
  time: {
    // Enough for gigabytes on a slow disk. The caller's signal may end a transfer sooner.
    transfer: milliseconds(15 * 60_000, 'a transfer'),
  },
  count: {
    // Entries are read one by one; code that keeps them has its own bound.
    pieces: times(100_000, 'pieces of data between the holes of a file'),
  },
});

export const workspaceFiles = channel({
  over: "files of the workspace: its state before and after, their texts, and the case's artifacts",
  bytes: {
    // Beyond these two bounds, reading the whole workspace costs more than the engine's own list of changes,
    // which walks the whole image.
    whole: bytes(48 * MiB, 'a workspace that is read as a whole'),
    // In memory, so that an engine is asked once for a small workspace.
    again: bytes(4 * MiB, 'an archive of a workspace that is not read again to keep and to grade it'),
    artifacts: bytes(512 * MiB, 'all artifacts of a trial'),
    text: bytes(256 * KiB, 'a text file whose content is kept for its diff'),
    // In memory until the workspace was read.
    texts: bytes(8 * MiB, 'the texts after a trial, half of them of new files; and half as much before'),
    // In a file without a name.
    textsBefore: bytes(512 * MiB, 'the texts of the prepared workspaces of a batch, on disk'),
  },
  time: {
    // An engine sends about 150 MB a second, so this is far more than artifacts need.
    reading: milliseconds(5 * 60_000, 'reading the workspace'),
  },
  count: {
    entries: times(20_000, 'entries of a workspace that is read as a whole'),
    artifacts: times(1000, 'artifacts of a trial'),
    texts: times(400, 'texts of changed files, half of them of new ones'),
    changes: times(2000, 'changed paths that a record describes'),
  },
});

export const visibleAnswers = channel({
  over: 'the search of a prepared sandbox for files that grade or solve its case, and for later commits',
  bytes: {
    smallest: bytes(20, 'a file that is searched for; anything shorter may be there by chance'),
    archive: bytes(
      128 * MiB,
      'an archive that is unpacked to be searched, and each file that it is unpacked to',
    ),
    text: bytes(128 * 1024, 'a file whose lines are compared with those of the solution and the tests'),
    output: bytes(16 * MiB, 'what the search prints'),
  },
  time: {
    search: milliseconds(5 * 60_000, 'the search, once for each prepared image'),
    archives: milliseconds(60_000, 'until no more archives are unpacked; results say which were not'),
  },
  count: {
    answers: times(10_000, 'files that are searched for'),
    archives: times(500, 'archives of an image, or in another archive, that are unpacked'),
    lines: times(1_000, 'parts of the solution and the tests whose lines are looked for in larger files'),
    texts: times(20, 'files of an image, or in an archive, whose lines are compared'),
    shown: times(5, 'commits and files that a message names'),
  },
});

export const carriedArtifacts = channel({
  over: 'artifacts and workspaces that are brought into the sandbox of the tests, without being unpacked here',
  bytes: 'no more than the agent may write to its disk, and what its workspace had before',
  time: 'that of an archive',
  count: { entries: times(200_000, 'files, folders and links that are brought') },
});

export const keptWorkspaces = channel({
  over: 'what a trial left, kept for `offsite trial regrade`: an archive of its workspace, or an image of its sandbox',
  bytes: {
    archive: bytes(2 * GiB, 'the archive of a workspace, and all files in it'),
    stored: bytes(1 * GiB, 'the same as it is stored, compressed'),
    image: bytes(2 * GiB, 'what was written in a sandbox of which an image is kept'),
  },
  time: {
    // Keeping runs mostly while the trial is graded, but the trial waits for it.
    keeping: milliseconds(60_000, 'keeping what a trial left; then it is not kept'),
  },
  count: {
    changes: times(
      100_000,
      'changed paths of a sandbox that is searched for keys before an image of it is kept',
    ),
    contents: times(10_000, 'changed files and new folders of it, each searched with one request'),
  },
});

export const pathLists = channel({
  over: 'paths of changed files',
  bytes: {
    // A kit has a few megabytes, a listing a few hundred thousand paths.
    listing: bytes(64 * MiB, 'a listing that is printed inside'),
    // With a small heap, 1/32 of that.
    list: characters(64 * MiB, 'a list of paths'),
    // The longest path of Linux, minus the length that the layer's own folder may have.
    path: bytes(3500, 'a path in a layer; for a longer one, its folder counts'),
    // The time for matching grows faster than the length of the path.
    matched: characters(1024, 'a path that is compared with globs'),
    compared: bytes(64 * MiB, 'a file whose content is compared'),
    kept: characters(1 * MiB, 'a list of paths in a record'),
  },
  time: {
    listing: milliseconds(120_000, 'a listing that is printed inside'),
    // At a load of 28 on two processors, 15 ms were the longest of 25 starts.
    hosts: milliseconds(2_000, 'until the first process has written the hosts file into an empty `/etc`'),
  },
  count: {
    kept: times(10_000, 'paths of a list in a record'),
    outside: times(1000, 'paths outside the workspace in a result'),
    matchedFolders: times(64, 'folders in a path that is compared with globs'),
    // Each path takes one round trip. Further paths count as unexplained.
    compared: times(5000, 'paths whose contents are compared'),
    comparedAtATime: times(8, 'of these at a time'),
    shown: times(20, 'paths in a message'),
  },
});

export const reportedOutput = channel({
  over: 'outputs of commands, on their way to the service',
  // Services refuse reports that are far larger; the embedded one refuses more than 8 MiB of JSON.
  bytes: {
    all: characters(4 * MiB, 'all outputs in one report'),
    plain: characters(64 * KiB, 'events for which a refusal says something about the service'),
  },
  time: 'the calls to the service are bounded',
  count: 'each output is cut to an equal share',
});
