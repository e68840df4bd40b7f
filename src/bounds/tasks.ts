import { bytes, channelOf, characters, KiB, MiB, milliseconds, times } from './channel.ts';

/** Bounds for task sets, which are other people's folders. */
const channel = channelOf("a task's author");

export const taskSets = channel({
  over: 'folders of tasks in the formats of others',
  bytes: {
    // The parser of TOML takes some hundred bytes of memory for each byte.
    toml: bytes(256 * KiB, 'a task in TOML'),
    dataset: bytes(2 * MiB, 'a data set in TOML, which names each of its tasks'),
    json: bytes(32 * MiB, 'a registry, or another file in JSON'),
    text: bytes(4 * MiB, 'an instruction, a script, a list of ignored files'),
  },
  time: 'only regular files are read, and only inside of the task',
  count: {
    tasks: times(50_000, 'tasks of a set'),
    depth: times(6, 'levels of folders above a task'),
    entries: times(500_000, 'folders and files that are looked at in the search for tasks'),
    levels: times(64, 'levels of tables and lists in TOML'),
    listed: times(50, 'problems, and notes, of a task'),
  },
});

export const taskDigests = channel({
  over: 'the files of a task, to put them into place, and to compare them with its digest',
  bytes: { files: bytes(4096 * MiB, 'the files of a task; above it, the digest is not checked') },
  // A pattern with wildcards can take long for each name.
  time: { ignored: milliseconds(10_000, 'comparing the names of files with patterns of ignored ones') },
  count: {
    files: times(100_000, 'files of a task'),
    depth: times(64, 'levels of its folders'),
    patterns: times(500, 'patterns of ignored files'),
    wildcards: times(4, 'wildcards of a pattern'),
  },
});

export const taskRows = channel({
  over: 'tasks that are rows of a file, of which one is in memory at a time',
  bytes: { row: bytes(16 * MiB, 'a row') },
  time: {
    workspace: milliseconds(
      10 * 60_000,
      'applying a test patch, or emptying a workspace, before it is graded',
    ),
  },
  count: { tests: times(200_000, 'names of tests of a row') },
});

export const rewards = channel({
  sender: 'the sandbox',
  over: "rewards that a task's tests write or print",
  bytes: {
    file: bytes(1 * MiB, 'a reward file'),
    report: bytes(32 * MiB, 'a report of the tests'),
    output: characters(64 * MiB, 'the printed output that is searched for results'),
  },
  time: 'one pass over bytes that are bounded',
  count: {
    rewards: times(1_000, 'rewards of a task'),
    tests: times(200_000, 'printed results'),
    shownTests: times(20, 'names of tests in a message'),
  },
});
