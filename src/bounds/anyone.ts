import { bytes, channelOf, characters, GiB, MiB, milliseconds, partOfHeap, times } from './channel.ts';

/** Bounds that apply to every sender. */
const channel = channelOf('anyone');

export const foreignJson = channel({
  over: 'JSON of harnesses, modules, models, services and callers; its size in memory is estimated first',
  bytes: { document: partOfHeap(1 / 4, 'a document after it is parsed') },
  time: 'one pass over bytes that are bounded',
  count: {
    levels: times(
      256,
      'levels of a document, because code that calls itself for each level fails at thousands',
    ),
    recordLevels: times(512, 'levels of a stored record, which has documents in it'),
  },
});

export const printedText = channel({
  over: 'texts that are printed or logged; machine formats have them in full',
  bytes: {
    value: characters(500, 'a name or another value within a line'),
    line: characters(2_000, "a line that is a text's own"),
    title: characters(200, 'an entry of a timeline'),
    // The time grows with the square of the length.
    compared: characters(100, 'a name that is compared with those that there are'),
    logLine: characters(16_384, 'a line of a log; in a longer one, long texts are cut'),
  },
  time: 'bytes and count bound it',
  count: {
    lines: times(100, 'lines of a text: the first and the last ones'),
    firstLines: times(4, "first lines of a script's output"),
    outputLines: times(8, "last lines of a script's output"),
    lastLines: times(40, 'last lines of what a failed check printed, in JUnit XML and JSON'),
    listed: times(1_000, "entries of a trial's list in the JSON document"),
  },
});

export const defects = channel({
  over: 'bytes that trigger a defect of Offsite, so that an error is uncaught or the process dies',
  bytes: 'nothing more is read: the process saves its work and ends',
  time: { putAway: milliseconds(60_000, 'saving work after an uncaught error') },
  count: {
    escaped: times(20, 'uncaught errors during that time; at the next one the process ends at once'),
    crashes: times(2, 'runs of a trial that end with such an error; then it is not retried'),
    // More than `crashes`, because the usual cause is a machine that is switched off, or a person with `kill
    // -9`. But a trial that exhausts the machine's memory leaves no error either.
    deaths: times(5, 'runs of a trial in which the process dies without an error'),
  },
});

export const viewedRecords = channel({
  over: 'records of trials that the viewer keeps in memory; their size there is estimated',
  bytes: { kept: partOfHeap(1 / 4, 'all of them, beside the last one, which stays whatever its size') },
  time: 'one pass over bytes that are bounded',
  count: 'the size bounds it',
});

export const exportedPage = channel({
  over: 'records and contents in an exported page',
  bytes: { whole: bytes(192 * MiB, 'the page; trials that do not fit are left out, and counted') },
  time: 'the user waits for it, and can end it',
  count: 'the page names every trial; its size bounds the records',
});

export const projectFiles = channel({
  over: 'files of a project that `case add` looks at, such as package.json',
  bytes: { file: bytes(4 * MiB, 'a file; a larger one counts as missing') },
  time: 'only regular files are read',
  count: { tests: times(20, 'tests in Python that are read; other files are of a fixed list of names') },
});

export const evidenceBundles = channel({
  over: 'bundles of evidence that somebody else wrote',
  bytes: {
    statement: bytes(128 * MiB, 'the statement, which lists all else with its size'),
    // A suite with all its files, in base64.
    document: bytes(384 * MiB, 'a plan, a setup, a record or a report'),
    all: bytes(256 * GiB, 'all contents after they are expanded'),
    small: bytes(64 * MiB, 'contents of a bundle that may expand by any ratio'),
    spared: bytes(256 * MiB, 'of the disk that are left free'),
    piece: bytes(256 * 1024, 'a content that is in memory at a time, unless it is a document'),
  },
  time: 'the user waits for it, and can end it',
  count: {
    contents: times(500_000, 'contents; anything that the statement does not list is refused'),
    // One record can name millions, and the statement can give it to many trials.
    names: times(2_000_000, 'contents that records name, for each trial that has the record'),
    // Each request to a model repeats the conversation so far.
    ratio: times(1_000, 'bytes after expanding for each byte of the file'),
  },
});

export const foreignLogs = channel({
  over: 'logs of other programs that `import-log` reads: .eval files and job folders of Harbor',
  bytes: {
    file: bytes(4096 * MiB, 'a .eval file'),
    unpacked: bytes(16_384 * MiB, 'all that is read of a .eval file'),
    document: bytes(128 * MiB, 'a JSON document, also after it is decompressed'),
    text: characters(256 * 1024, 'a text that is kept; a longer one is cut'),
  },
  time: 'bytes and count bound it, and the user can end it',
  count: {
    files: times(100_000, 'files of a .eval log, entries of a job folder, logs of a folder'),
    events: times(20_000, 'events of a trial; further ones are left out'),
  },
});
