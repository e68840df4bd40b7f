import { channel, characters, milliseconds, partOfHeap, times } from './channel.ts';

/** What holds whoever sent it. */

export const foreignJson = channel({
  sender: 'anybody',
  over: 'JSON of harnesses, modules, models and services, weighed before it is parsed',
  bytes: { document: partOfHeap(1 / 4, 'a document once it is parsed') },
  time: 'one pass over bytes that are bounded',
  count: 'its weight counts each value',
});

export const printedText = channel({
  sender: 'anybody',
  over: 'texts that are printed or logged; machine formats have all of them',
  bytes: {
    value: characters(500, 'a name or another value within a line'),
    line: characters(2_000, "a line that is a text's own"),
    logLine: characters(16_384, 'a line of a log, above which its long texts are cut'),
  },
  time: 'bytes and count bound it',
  count: {
    lines: times(100, 'lines of a text: its first and its last ones'),
    outputLines: times(8, "lines of a script's output"),
    listed: times(1_000, "entries of a trial's list in the JSON document"),
  },
});

export const defects = channel({
  sender: 'anybody',
  over: 'bytes that meet a defect of ours, so that an error escapes or the process dies',
  bytes: 'nothing more is read: the process puts away what it has and ends',
  time: { putAway: milliseconds(60_000, 'putting things away after an error escaped') },
  count: {
    escaped: times(20, 'errors that escape meanwhile; at the next one the process ends where it stands'),
    crashes: times(2, 'runs of a trial that end with such an error; then it is not tried again'),
    // More, since a machine that is switched off, or a person with `kill -9`, is mostly why; yet a trial that
    // exhausts the machine's memory leaves no word either.
    deaths: times(5, 'runs of a trial in which the process dies without a word'),
  },
});
