import { bytes, channelOf, characters, KiB, MiB, milliseconds, times } from './channel.ts';

/** Bounds for what an Eval Service sends. */
const channel = channelOf('the service');

export const serviceAnswers = channel({
  over: 'answers to the calls of its operations',
  bytes: {
    // No documented answer but a page comes close to this; a larger one is a mistake or an attack.
    answer: bytes(64 * MiB, 'an answer that is read as a whole'),
    // 20 runs of 10 trials of 1.3 MB each.
    page: bytes(256 * MiB, 'a page of runs; with a small heap 1/16 of it'),
    searched: bytes(
      MiB,
      'the beginning of an answer that is searched for keys before a message shows less of it',
    ),
  },
  time: {
    connect: milliseconds(10_000, 'until a connection is open'),
    attempt: milliseconds(60_000, 'one attempt of a call; for a page of runs, the longest pause within it'),
    call: milliseconds(180_000, 'a call with all its attempts'),
    // 256 MiB at 7 Mbit/s.
    page: milliseconds(300_000, 'the same for a page of runs'),
    file: milliseconds(15 * 60_000, 'a call that sends evidence, which the service audits before it answers'),
    health: milliseconds(15_000, "a daemon's health check of the service"),
    retryWait: milliseconds(15_000, 'between two attempts'),
    retryAfter: milliseconds(60_000, 'that a service may ask to wait before the next attempt'),
    // If a report is due later than this, the clock has been set back since the report was deferred.
    deferral: milliseconds(15 * 60_000, 'that a report is deferred'),
  },
  count: {
    tries: times(6, 'attempts of a call'),
    retryBudget: times(30, 'retries in the budget that all calls share'),
    // Ten thousand pages of the size that the specification gives.
    runs: times(200_000, 'runs of a case in a list'),
    records: times(100_000, 'runs of a page that are read, and trials'),
    issues: times(20, 'issues of an answer in a message'),
    passedOver: times(100, 'messages about parts of answers that cannot be read'),
  },
});

export const serviceDescription = channel({
  over: 'its OpenAPI document, from which an agent learns whether it offers claims',
  bytes: { document: bytes(4 * MiB, 'the document; a larger one counts as none') },
  time: {
    answer: milliseconds(10_000, 'until all of it has arrived'),
    absent: milliseconds(60 * 60_000, 'until it is asked again, if it offers no claims'),
    unclear: milliseconds(60_000, 'until it is asked again, if it failed'),
  },
  count: 'one request at a time',
});

export const claimAnswers = channel({
  over: 'answers about claims of trials',
  bytes: 'as every answer to a call',
  time: {
    call: milliseconds(10_000, 'a call to claim, renew or give back a trial'),
    held: milliseconds(15_000, 'until a trial that another agent has claimed is looked at again, at most'),
    down: milliseconds(15_000, 'without claiming anything after a call failed'),
    release: milliseconds(5_000, 'for giving trials back when an agent ends'),
  },
  count: 'one lease for each trial that runs or has its sandbox started ahead',
});

export const foundRuns = channel({
  over: 'runs that a daemon finds in its lists',
  bytes: 'each list is one answer',
  time: {
    // Longer than the limit of a look, and than the limits of a call and of the page that follows it.
    step: milliseconds(10 * 60_000, 'a step of a loop; then the watchdog ends the daemon'),
    look: milliseconds(9 * 60_000, 'looking for the runs of a case, on all pages'),
    nowhere: milliseconds(60_000, 'between two checks of settings that name no poll target'),
    clockDifference: milliseconds(10 * 60_000, "that the service's clock may differ from ours"),
  },
  count: 'the runs of a list are bounded; only running trials, and as many again, are in memory',
});

export const spanReceipts = channel({
  sender: 'anyone',
  over: 'answers of a receiver of OpenTelemetry spans',
  bytes: {
    answer: bytes(64 * KiB, 'an answer; the rest is not read'),
    shown: characters(500, 'an answer, in a message'),
  },
  time: {
    attempt: milliseconds(30_000, 'one attempt'),
    retryWait: milliseconds(15_000, 'between two attempts, also if it asks for more'),
  },
  count: { tries: times(5, 'attempts to send one request') },
});
