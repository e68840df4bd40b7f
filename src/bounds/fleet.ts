import { bytes, channelOf, characters, GiB, KiB, MiB, milliseconds, times } from './channel.ts';

/** Bounds for what other machines of a fleet send, through the storage and through Temporal. */
const channel = channelOf('the fleet');

export const fleetStorage = channel({
  over: 'contents and results in the shared storage',
  bytes: {
    content: bytes(2 * GiB, 'a content: a plan with its files, or an artifact'),
    document: bytes(256 * MiB, 'a plan or a record, which is read as a whole'),
    result: bytes(16 * KiB, 'an entry of the index'),
    name: characters(1024, 'an id in an entry'),
  },
  time: {
    // These limits are for buckets. A storage in a folder has none: file systems have no timeouts.
    connect: milliseconds(10_000, 'connecting to the service of a bucket'),
    silence: milliseconds(60_000, 'no byte from the service of a bucket'),
    transfer: milliseconds(1_800_000, 'a content on its way to or from a bucket'),
  },
  count: { documents: times(4, 'plans of batches that a worker keeps in memory') },
});

export const fleetContexts = channel({
  over: 'build contexts in the shared storage',
  bytes: { all: bytes(GiB, 'all files of a context') },
  time: 'as for contents',
  count: {
    entries: times(20_000, 'files and folders of a context'),
    kept: times(100, 'contexts that a worker keeps on its disk'),
  },
});

export const fleetMessages = channel({
  over: 'orders, summaries and queries through Temporal',
  bytes: {
    // Temporal itself refuses a payload of more than 2 MiB.
    text: characters(1000, 'a reason in a summary'),
    // Temporal refuses longer names of workflows and activities.
    foundId: characters(200, 'an id of a queued run that a poll starts, or of its batch'),
  },
  time: {
    connect: milliseconds(2_000, 'the first answer of the server'),
    call: milliseconds(10_000, 'a call'),
    page: milliseconds(120_000, 'reading a page of the list of trials'),
    presence: milliseconds(4_000, 'showing that a worker is there'),
    look: milliseconds(600_000, 'looking for queued runs of some poll targets'),
    starting: milliseconds(600_000, 'starting a batch, until its runs count as queued by somebody else'),
  },
  count: {
    page: times(200, 'trials or results in one payload'),
    open: times(20_000, 'trials of a batch that are scheduled at a time'),
    // The server changes a workflow's state for each heartbeat of its trials, one change after another. It
    // refuses more than 2,000 open activities.
    lane: times(1_000, 'trials that one workflow keeps scheduled'),
    // A trial has about six events, and more if it is retried. The server ends a workflow after 51,200
    // events.
    slice: times(4_000, 'trials of one workflow'),
    holders: times(20_000, 'processes that ask for permits of one model'),
    permits: times(10_000, 'requests that a process has in flight or waiting'),
    listed: times(1_000, 'batches in a list'),
    targets: times(20, 'poll targets that one activity looks at'),
    cases: times(1_000, 'cases of a suite that a poll looks at'),
    failures: times(20, 'poll targets with a failure that a poll names'),
    names: times(500, 'labels, models or other names that a worker offers'),
    needs: times(32, 'different needs of the trials of a batch'),
    queues: times(64, 'task queues of trials that a worker polls'),
    workers: times(2_000, 'workers in a list'),
    lost: times(100, 'trials without a result that a batch names'),
  },
});
