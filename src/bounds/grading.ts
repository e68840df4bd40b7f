import { bytes, channelOf, characters, KiB, MiB, milliseconds, times } from './channel.ts';

/**
 * Bounds for what a validator sends, and for what the work that it examines sends. This file is also copied
 * into the validator's sandbox. The code there shortens texts that would be refused here, but nothing here
 * relies on that.
 */
const channel = channelOf("the suite's author");

export const validatorRecords = channel({
  over: 'records of a validator that is a module, on the standard output of its sandbox',
  bytes: {
    line: characters(32 * MiB, 'a line'),
    all: characters(128 * MiB, 'all records of a validator'),
    path: characters(4096, 'a path in a record'),
    text: characters(1 * MiB, 'a text, as the sandbox cuts it'),
    logs: characters(256 * KiB, 'what a validation prints, as the sandbox cuts it'),
    material: characters(1 * MiB, 'material of a question to a model, as the sandbox refuses it'),
    kept: characters(64 * KiB, 'a text in the record: its beginning and its end'),
    reason: characters(8 * KiB, "a judgment's reason"),
  },
  time: "the validator's own deadline",
  count: {
    logs: times(300_000, 'log entries of a validation'),
    votes: times(25, 'votes of one judge on one question'),
  },
});

export const programOutput = channel({
  over: 'standard output and error of a validator that is a program, which may be a report of many tests',
  bytes: { kept: bytes(8 * MiB, 'each stream') },
  time: "the validator's own deadline",
  count: 'the bytes of a report bound its tests',
});

export const workForValidator = channel({
  over: 'programs of the work that a validator runs, and files of the work that it reads',
  bytes: {
    output: bytes(8 * MiB, 'each output of a program'),
    file: bytes(16 * MiB, 'a file that is read from another sandbox'),
    call: bytes(64 * MiB, 'a call of `offsite-run`: its arguments, or the input that it passes on'),
    calls: bytes(128 * MiB, 'all calls of `offsite-run` in flight'),
    callName: characters(64, 'a name of a call'),
  },
  time: {
    program: milliseconds(60_000, 'a program, unless the validator sets another limit'),
    // A program that does not end must not end the validator too: the trial would have no verdict.
    verdict: milliseconds(10_000, "of the validator's time, or half of it, reserved for its verdict"),
    // Ending processes takes some milliseconds; on a busy machine it may take this long.
    ending: milliseconds(20_000, "one attempt to end the work's processes"),
    // A process that the program left behind may hold the output open forever.
    lateOutput: milliseconds(2_000, 'until the output of an ended program is complete'),
    // Work that the validator ran as its own user may have stopped the process that passes calls on.
    lateCalls: milliseconds(5_000, 'until the last calls of an ended validator have arrived'),
    // Changing the owner walks the whole workspace.
    giving: milliseconds(120_000, 'giving a workspace to another user'),
  },
  count: {
    // Each one may hold two outputs.
    programs: times(16, 'programs and calls at a time; more wait'),
    waitingCalls: times(10_000, 'calls of `offsite-run` that wait'),
    // Each one may hold a file until the validator has read it.
    looks: times(2, 'files and lists that are read for a validator at a time; more wait'),
    files: times(200_000, 'files that are listed'),
    // Linux has the same limit.
    links: times(40, 'links in a row'),
    // If the work uses up all allowed processes, the process that ends them usually starts, but not always.
    endingTries: times(20, "attempts to end the work's processes; then all of the container's are ended"),
  },
});
