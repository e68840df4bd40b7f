import type { Cause } from './cause.ts';
import { failuresOf } from './failures.ts';
import { commandsOf } from './timeline.ts';
import type { TrialRecord } from './trial-record.ts';
import { otherCostOf, usageOf } from './usage.ts';

/** What a listing has as it is in the record. */
const asRecorded = [
  'startedAt',
  'finishedAt',
  'steady',
  'notRun',
  'fromService',
  'harnessVersion',
  'verifiedIn',
  'validatedIn',
  'mappedImages',
  'replay',
] as const satisfies readonly (keyof TrialRecord)[];

type AsRecorded = Pick<TrialRecord, (typeof asRecorded)[number]>;

/**
 * What lists and tables show of a trial. It is stored beside the record when the trial ends, so that a list
 * of thousands reads no records. A number that was not measured is absent.
 */
export interface TrialListing extends AsRecorded {
  /** Absent where an older Offsite stored the listing. */
  verdict?: TrialRecord['verdict'];
  commands?: number | undefined;
  /** Of the agent's models. */
  totalTokens?: number | undefined;
  costUsd?: number | undefined;
  /** Of judges and simulated users. Absent also where an older Offsite stored the listing. */
  otherCostUsd?: number | undefined;
  /** Without its output; its message is one line. */
  cause?: Pick<Cause, 'kind' | 'phase' | 'message'> | undefined;
  /** The first check that failed, on one line, and how many failed. */
  failure?: string | undefined;
  failures: number;
  systemChanges?: { unexpected: { count: number } } | undefined;
}

/** How long a batch took. */
export interface Elapsed {
  /** Milliseconds. */
  ms: number;
  /**
   * Whether it is only known by clocks that can be set: its trials ran on several machines, or before and
   * after one was started again. It counts from the start of the batch then.
   */
  isAbout: boolean;
}

export function listingOf(result: TrialRecord): TrialListing {
  const { verdict, cause, systemChanges } = result;
  const recorded = Object.fromEntries(asRecorded.map((name) => [name, result[name]])) as AsRecorded;
  const usage = usageOf(result);
  const failures = failuresOf(result);
  return {
    ...recorded,
    verdict,
    commands: commandsOf(result)?.length,
    totalTokens: usage?.totalTokens,
    costUsd: usage?.costUsd,
    otherCostUsd: otherCostOf(result),
    cause: cause && { kind: cause.kind, phase: cause.phase, message: oneLine(cause.message) },
    failure: failures[0] && oneLine(failures[0]),
    failures: failures.length,
    systemChanges: systemChanges && { unexpected: { count: systemChanges.unexpected.count } },
  };
}

/** Why a trial did not pass, in one line; empty if it passed. */
export function whyText({ cause, failure, failures }: TrialListing): string {
  if (cause) return `${cause.kind}, in ${cause.phase}: ${cause.message}`;
  return failures > 1 ? `${failure} (and ${failures - 1} more)` : (failure ?? '');
}

/** Characters of a line in a list. */
const characters = 160;

/** A reason on one line. Causes may have several. */
export function oneLine(reason: string): string {
  const [line = ''] = reason.trim().split('\n');
  return line.length > characters ? `${line.slice(0, characters).toWellFormed()}…` : line;
}
