import { bytes, channelOf, characters, MiB, milliseconds, times } from './channel.ts';

/** Bounds for what the author of a suite or a configuration sends. */
const channel = channelOf("the suite's author");

export const suiteFiles = channel({
  over: 'files that a suite or a profile names',
  bytes: {
    file: bytes(16 * MiB, 'a file'),
    all: bytes(128 * MiB, 'all files of a suite, or of a profile'),
  },
  time: 'only regular files are read: no pipe, socket or device, which could block',
  count: {
    files: times(10_000, "files of a profile's folders"),
    depth: times(40, 'levels of folders'),
  },
});

export const buildContexts = channel({
  over: 'build contexts, after what .dockerignore leaves out',
  bytes: {
    all: bytes(2048 * MiB, 'all files of a context'),
    piece: bytes(1 * MiB, 'a file that is read at a time'),
    overlap: bytes(8 * 1024, 'a piece that is looked at again with the next one, since a key may be on both'),
    output: bytes(1 * MiB, 'what is kept of the output of a build, half from its beginning and its end'),
  },
  time: 'the timeout `build` of the sandbox',
  count: { entries: times(200_000, 'files and folders of a context') },
});

export const gitSources = channel({
  over: 'repositories that a suite names as sources, and the servers that have them',
  bytes: {
    fetched: bytes(1024 * MiB, 'what git fetches of a repository'),
    all: bytes(2048 * MiB, 'the files of a commit'),
    file: bytes(512 * MiB, 'a file of a commit'),
    list: bytes(64 * MiB, 'the names that git lists'),
    messages: bytes(4 * MiB, "git's messages and its progress"),
  },
  time: {
    asked: milliseconds(2 * 60_000, 'finding a branch or a tag'),
    fetched: milliseconds(30 * 60_000, 'fetching a commit'),
    read: milliseconds(10 * 60_000, 'reading a commit that is here'),
    looked: milliseconds(500, 'between two looks at what is fetched'),
  },
  count: {
    files: times(200_000, 'files and folders of a commit'),
    parallel: times(4, 'repositories that are fetched at a time'),
  },
});

export const yamlFiles = channel({
  over: 'suites and configurations in YAML',
  bytes: {
    // Files that people or their programs write are far smaller.
    file: bytes(4 * MiB, 'a file'),
    expanded: characters(16 * MiB, 'a file after its aliases are expanded'),
    value: characters(16, 'that each value counts for, in addition to its length'),
  },
  time: 'bytes and count bound it: less than a second',
  count: {
    depth: times(100, 'levels of collections'),
    // The YAML parser takes time for each one.
    tokens: times(400_000, 'tokens of a file'),
    issues: times(50, 'problems of a file that are shown'),
  },
});

export const expandedTexts = channel({
  over: 'prompts and scripts after their variables are expanded',
  // A few megabytes of `{{name}}` can stand for terabytes.
  bytes: { text: characters(16 * MiB, 'a text after its variables are expanded') },
  time: 'its length is counted while its parts are collected, before they are joined',
  count: 'the files of a suite are bounded, and the body of a request',
});

export const queueTickets = channel({
  over: 'checked suites in the queue of a daemon, whose folder only its owner may write to',
  // A suite with all its files, and the files of its profiles in base64.
  bytes: { ticket: bytes(384 * MiB, 'a suite with all its files') },
  time: { look: milliseconds(5_000, 'between two checks, if watching the folder reports nothing') },
  count: 'one at a time, the oldest first',
});

export const registryLayers = channel({
  over: 'images that are pulled because a case or a sandbox names them; the engine keeps them',
  bytes: 'they stay on the engine: this process reads only how far it is',
  time: { pull: milliseconds(3_600_000, 'for a pull') },
  count: { layers: times(1_000, 'layers whose progress is shown') },
});

export const registryLogins = channel({
  sender: 'a caller',
  over: "the user's own logins at registries, from the programs that Docker's settings name",
  bytes: { answer: bytes(64 * 1024, 'the answer of such a program') },
  time: { helper: milliseconds(30_000, 'for its answer') },
  count: 'one for each pull',
});

export const serviceNetworks = channel({
  over: 'services beside a sandbox, and the network that they share with it',
  bytes: {
    memory: bytes(64 * MiB, 'each container that only keeps a network'),
    words: characters(4096, 'what such a container prints'),
  },
  time: { start: milliseconds(60_000, 'until such a container has done its work') },
  count: {
    services: times(16, 'services of a case'),
    names: times(64, 'their names and aliases together'),
  },
});

export const caseSteps = channel({
  over: 'cases of several steps',
  bytes: 'the files of all steps of a case together have the bounds of all files of a suite',
  time: 'the timeouts of the sandbox, of each step and of its tests',
  count: { steps: times(100, 'steps of a case') },
});

export const cassettes = channel({
  sender: 'anyone',
  over: 'cassettes of recorded exchanges, which a configuration names',
  bytes: {
    file: bytes(512 * MiB, 'a cassette'),
    // Requests repeat their conversation, so a cassette names each text once.
    request: bytes(80 * MiB, 'a request with its texts in place'),
    requests: bytes(8192 * MiB, 'all requests of a cassette with their texts in place'),
  },
  time: 'one pass over bytes that are bounded',
  count: {
    lines: times(1_000_000, 'lines: texts, trials and exchanges'),
    trials: times(10_000, 'trials'),
  },
});

export const addedCases = channel({
  over: 'changes of a repository of which `case add` makes cases, as git writes them',
  bytes: { patch: bytes(16 * MiB, 'the patch of the tests, or of everything else') },
  time: 'the time that reading a commit of a source may take',
  count: { files: times(1_000, 'files that a change has') },
});
