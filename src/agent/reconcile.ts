import { isDeepStrictEqual } from 'node:util';
import { OffsiteError } from '../base/offsite-error.ts';
import { versionOf } from '../base/version.ts';
import type { Client } from '../client/client.ts';
import type { ListedRun, ServiceTrial } from '../client/pages/page-reader.ts';
import { NotFound } from '../client/refusal.ts';
import type { ReportedTrial } from '../contract/report.ts';
import type { TrialKey } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { KnownRun, PendingReport, TrialReport } from '../ledger/outbox.ts';
import { plural } from '../text/quantities.ts';
import { resultFromService } from './result-from-service.ts';

/**
 * What the ledger has of a trial. `sent`: the service may have the report, because it accepted it or because
 * an answer was lost. `delivered`: the service has shown the result. `taken` has only what the service
 * showed: there is no report of it.
 */
export type InLedger = 'open' | 'queued' | 'sent' | 'parked' | 'delivered' | 'superseded' | 'taken';

/**
 * What the service's record shows of a trial.
 *
 * - `open`: no result
 * - `ours`: the result that the ledger has, and `other`: another one
 * - `bare`: a result, but nothing of it that could be compared
 * - `absent`: the service lists no such run
 * - `unclear`: a status that Offsite does not know, or a run without a list of its trials
 */
export type AtService = 'open' | 'ours' | 'other' | 'bare' | 'absent' | 'unclear';

/**
 * What happens to a trial. `run`: it runs. `take`: the service's result becomes the ledger's. `send`: its
 * report is sent. `deliver` and `supersede` note what the service has. `wait`: its report is sent later.
 * `none`: ledger and service agree, or nobody can tell.
 */
export type Action = 'run' | 'take' | 'send' | 'deliver' | 'supersede' | 'wait' | 'none';

type Row = Readonly<Record<AtService, Action>>;

function row(open: Action, ours: Action, other: Action, bare: Action, absent: Action, unclear: Action): Row {
  return { open, ours, other, bare, absent, unclear };
}

/** What happens to a trial, by what the ledger has of it and by what the service's record shows. */
export const actions: Readonly<Record<InLedger, Row>> = {
  open: row('run', 'take', 'take', 'take', 'run', 'run'),
  queued: row('send', 'deliver', 'supersede', 'supersede', 'send', 'send'),
  sent: row('send', 'deliver', 'supersede', 'deliver', 'send', 'send'),
  parked: row('wait', 'deliver', 'supersede', 'wait', 'wait', 'wait'),
  delivered: row('send', 'none', 'supersede', 'none', 'send', 'none'),
  superseded: row('send', 'deliver', 'none', 'none', 'none', 'none'),
  taken: row('run', 'none', 'none', 'none', 'none', 'none'),
};

/** What became of a report. */
export type Delivered =
  /** The service has answered. What its record shows decides what the answer meant. */
  | { kind: 'sent' }
  /** The service shows the result. `note` says more, if it is not the usual way. */
  | { kind: 'delivered'; note?: string }
  /** The service has another result of the trial. */
  | { kind: 'superseded'; answer: string }
  /** The report is still in the outbox: `queued` is sent again later, `parked` needs a change first. */
  | { kind: 'kept'; state: 'queued' | 'parked'; answer: string };

export interface ReconcileParts {
  client: Client;
  ledger: Ledger;
  /** Receives messages for the user. */
  note(message: string): void;
  /** Receives what became of each report that was pending. */
  observe?(report: PendingReport, delivered: Delivered): void;
}

/** How many trials changed. */
export interface Reconciled {
  /** Reports whose results the service had shown, and that are queued again. */
  lost: number;
  taken: number;
  superseded: number;
  /** Trials that run again: only the service had their results, and it lost them. */
  again: number;
}

/**
 * Compares what the ledger has of these runs with the service's records, and acts on each difference. Safe to
 * call at any moment, by several processes. Rejects if the service cannot be asked; what was compared before
 * is done.
 *
 * @param open whether open trials get the results that the service has. Only for who holds their lock
 */
export async function reconcile(
  runs: readonly KnownRun[],
  parts: ReconcileParts,
  signal: AbortSignal | undefined,
  { open }: { open: boolean },
): Promise<Reconciled> {
  const total: Reconciled = { lost: 0, taken: 0, superseded: 0, again: 0 };
  const how = { open, askedAt: parts.ledger.records.now() };
  for await (const [run, record] of recordsOf(runs, parts.client, signal))
    await reconcileRun(run, record, parts, total, how);
  const { lost, taken, superseded, again } = total;
  if (lost > 0)
    parts.note(
      `the service has no result of ${plural(lost, 'trial')} whose reports it had accepted; they are sent again`,
    );
  if (taken > 0)
    parts.note(`took the results of ${plural(taken, 'trial')} from the service: the ledger lacked them`);
  if (superseded > 0)
    parts.note(
      `the service has other results of ${plural(superseded, 'trial')} than this ledger; they count there`,
    );
  if (again > 0)
    parts.note(
      `the service has lost results that only it had: ${plural(again, 'trial')} must run again (offsite resume)`,
    );
  return total;
}

async function reconcileRun(
  run: KnownRun,
  record: ListedRun<'results'> | undefined,
  { ledger, observe }: ReconcileParts,
  total: Reconciled,
  { open, askedAt }: { open: boolean; askedAt: number },
): Promise<void> {
  const { outbox, trials, foundRuns } = ledger;
  for (const trial of outbox.ofRun(run.key)) {
    const has = inLedger(trial);
    if (has === undefined || (has === 'open' && !open)) continue;
    // The record may be older than an answer that came meanwhile. A later time is of a clock that was set
    // back.
    const isNewer = trial.since > askedAt && trial.since <= ledger.records.now();
    if ((has === 'sent' || has === 'delivered') && isNewer) continue;
    const { state, listed } = trialIn(record, trial.ordinal, () =>
      trial.state === undefined ? undefined : readBody(trial.trial, ledger),
    );
    const report = outbox.ofTrial(trial.trial);
    const became = (delivered: Delivered) => report && observe?.(report, delivered);
    switch (actions[has][state]) {
      case 'take': {
        const { verdict, result } = resultFromService(record as ListedRun<'results'>, listed as ServiceTrial);
        await trials.take(trial.trial, verdict, result);
        total.taken++;
        break;
      }
      case 'run':
        if (has !== 'taken') break;
        foundRuns.runAgain(run.key, trial.trial);
        total.again++;
        break;
      case 'send':
        if (report?.state === 'sent') {
          const answer = `${report.answer ?? 'the service accepted it'}; ${shownOf(state, listed)}`;
          outbox.deferred(trial.trial, answer, ledger.records.now() + unseenMs(report.tries));
          became({ kind: 'kept', state: 'queued', answer });
        } else if (has === 'delivered' || has === 'superseded') {
          outbox.sendAgain(trial.trial);
          total.lost++;
        }
        // What is queued already keeps its turn.
        break;
      case 'deliver':
        outbox.delivered(trial.trial);
        became({ kind: 'delivered', ...(state === 'bare' && { note: shownOf(state, listed) }) });
        break;
      case 'supersede': {
        const answer = otherResult(listed);
        outbox.superseded(trial.trial, answer);
        if (has === 'delivered') total.superseded++;
        else became({ kind: 'superseded', answer });
        break;
      }
      default:
    }
  }
}

function readBody(trial: TrialKey, { outbox }: Ledger): ReportedTrial | 'unreadable' {
  try {
    return outbox.body(trial);
  } catch (error) {
    if (isUnreadable(error)) return 'unreadable';
    throw error;
  }
}

/** Whether our own disk has lost a report. */
export function isUnreadable(error: unknown): boolean {
  return error instanceof OffsiteError && (error.code === 'BLOB_DAMAGED' || error.code === 'BLOB_MISSING');
}

/** Milliseconds until a report is sent again that was sent so often, and that the service does not show. */
function unseenMs(tries: number): number {
  if (tries <= 2) return tries <= 1 ? 0 : 2_000;
  return Math.min(10 * 60_000, 60_000 * 2 ** Math.min(tries - 3, 10));
}

function shownOf(state: AtService, listed: ServiceTrial | undefined): string {
  if (state === 'bare') return 'the service shows no content to compare';
  if (state === 'absent') return 'it does not list the run';
  if (state === 'open') return 'it lists the trial without a result';
  return listed
    ? `it shows the status ${listed.status}, which Offsite does not know`
    : 'it lists no trials of the run';
}

function inLedger({ state, sent, isOpen, isTaken }: TrialReport): InLedger | undefined {
  if (state === undefined) return isOpen ? 'open' : isTaken ? 'taken' : undefined;
  // A report that was refused at once did not arrive; the service was asked for its record because of that.
  return state === 'queued' || state === 'sent' ? (sent ? 'sent' : 'queued') : state;
}

/**
 * Finds reports that must be sent although nothing new has ended. The service refused them a day ago, or by
 * its answer to another version of Offsite; or it has lost the results: one that was restored from a backup
 * lacks what came after it. The last results are compared first, until a page of runs shows all of them.
 * Resolves with how many trials must run again. Rejects if the service cannot be asked.
 */
export async function reconcileEarlier(
  service: string,
  parts: ReconcileParts,
  signal: AbortSignal | undefined,
): Promise<number> {
  const { ledger, note } = parts;
  const before = ledger.records.now() - refusedMs;
  const offered = ledger.outbox.offerAgain(service, { before, version: versionOf() });
  if (offered > 0) note(`offers ${plural(offered, 'refused result')} to the service again`);
  const all = ledger.outbox.shown(service);
  let trialsAgain = 0;
  for (let from = 0; from < all.length; from += runsAtATime) {
    const runs = all.slice(from, from + runsAtATime);
    const { lost, superseded, again } = await reconcile(runs, parts, signal, { open: false });
    trialsAgain += again;
    if (lost + superseded + again === 0) break;
  }
  return trialsAgain;
}

/** Milliseconds after which a refused report is offered to the service again. */
const refusedMs = 24 * 60 * 60_000;
const runsAtATime = 20;

/** The service's records of runs; undefined for those that it does not list. */
export async function* recordsOf(
  runs: readonly KnownRun[],
  client: Client,
  signal: AbortSignal | undefined,
): AsyncGenerator<[KnownRun, ListedRun<'results'> | undefined]> {
  for (const [caseId, ofCase] of Map.groupBy(runs, (run) => run.caseId)) {
    const wanted = new Map(ofCase.map((run) => [run.id, run]));
    const results = { parts: 'results', of: ({ id }: ListedRun) => wanted.has(id) } as const;
    try {
      for await (const record of client.runs({ caseId }, { ...(signal && { signal }), ...results })) {
        const run = wanted.get(record.id);
        if (!run) continue;
        wanted.delete(record.id);
        yield [run, record];
        if (wanted.size === 0) break;
      }
    } catch (error) {
      // A service may not know a case without runs. Only its documented answer says so.
      if (!(error instanceof NotFound) || error.tag === undefined) throw error;
    }
    for (const run of wanted.values()) yield [run, undefined];
  }
}

/** What a service's record shows of a trial. */
export interface ObservedTrial {
  state: AtService;
  /** The trial in the record, if it is there. */
  listed: ServiceTrial | undefined;
}

/** @param report what the ledger would report of the trial; read only if there is something to compare */
export function trialIn(
  run: ListedRun<'results'> | undefined,
  ordinal: number,
  report: () => ReportedTrial | 'unreadable' | undefined,
): ObservedTrial {
  if (run === undefined) return { state: 'absent', listed: undefined };
  if (run.trials === undefined) return { state: 'unclear', listed: undefined };
  const listed = run.trials.find((trial) => trial.ordinal === ordinal);
  // A service may list a trial only after it is recorded.
  if (listed === undefined || openStatuses.has(listed.status)) return { state: 'open', listed };
  const known = recordedStatuses.has(listed.status);
  if (!known && !hasContent(listed)) return { state: 'unclear', listed };
  const own = report();
  if (own === 'unreadable') return { state: 'bare', listed };
  return { state: own === undefined ? 'other' : compared(listed, own), listed };
}

const openStatuses: ReadonlySet<string> = new Set(['queued', 'running']);
const recordedStatuses: ReadonlySet<string> = new Set(['reported', 'completed', 'voided']);

function hasContent({ id: _, ordinal: __, status: ___, ...content }: ServiceTrial): boolean {
  return Object.values(content).some((value) => value !== undefined);
}

/**
 * Whether a service's record of a trial comes from a report. The id of the sandbox decides, because no two
 * attempts have the same one. Without it, all that both have must be equal, and one of these must be a
 * measurement that hardly any two attempts have in common. Numbers may be rounded.
 */
function compared(
  recorded: ServiceTrial,
  { sandboxId, outcome, usage }: ReportedTrial,
): 'ours' | 'other' | 'bare' {
  if (recorded.sandboxId !== undefined && sandboxId !== undefined)
    return recorded.sandboxId === sandboxId ? 'ours' : 'other';
  if (recorded.status === 'voided' && outcome.passed !== undefined) return 'other';
  const measured = pairsOf([
    [rounded(recorded.modelMs), rounded(outcome.modelMs)],
    [rounded(recorded.sandboxMs), rounded(outcome.sandboxMs)],
    [recorded.usage?.totalTokens, usage?.totalTokens],
    [hashesOf(recorded.artifacts), hashesOf(outcome.artifacts)],
  ]);
  const others = pairsOf([
    [recorded.exitCode, outcome.exitCode],
    [recorded.commands, outcome.commandCount],
    [recorded.verifySteps, outcome.verifySteps],
    [recorded.validations?.map(verdictOf), outcome.validations?.map(verdictOf)],
  ]);
  const all = [...measured, ...others];
  if (!all.every(([one, other]) => isDeepStrictEqual(one, other))) return 'other';
  const isDistinctive = ([one]: Pair) => one !== 0 && !(Array.isArray(one) && one.length === 0);
  return measured.some(isDistinctive) ? 'ours' : 'bare';
}

type Pair = readonly [unknown, unknown];

function pairsOf(pairs: readonly Pair[]): Pair[] {
  return pairs.filter(([one, other]) => one !== undefined && other !== undefined);
}

function rounded(milliseconds: number | undefined): number | undefined {
  return milliseconds === undefined ? undefined : Math.round(milliseconds);
}

function hashesOf(artifacts: ServiceTrial['artifacts']): string[] | undefined {
  return artifacts?.map(({ path, sha256 }) => `${sha256} ${path}`).sort();
}

function verdictOf({ name, exitCode }: { name: string; exitCode?: number | undefined }): string {
  return `${exitCode} ${name}`;
}

/** Names the result that a service has in place of ours. */
export function otherResult(listed: ServiceTrial | undefined): string {
  const from = listed?.sandboxId === undefined ? '' : ` from the sandbox ${listed.sandboxId.slice(0, 12)}`;
  return `the service has another result of the trial${from} (${listed?.status ?? 'unknown status'})`;
}
