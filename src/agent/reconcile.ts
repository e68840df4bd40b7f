import { isDeepStrictEqual } from 'node:util';
import { OffsiteError } from '../base/offsite-error.ts';
import { versionOf } from '../base/version.ts';
import type { Client } from '../client/client.ts';
import type { ListedRun, ServiceTrial } from '../client/pages/page-reader.ts';
import { NotFound } from '../client/refusal.ts';
import type { ReportedTrial } from '../contract/report.ts';
import type { TrialKey } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { KnownRun } from '../ledger/outbox.ts';
import type { ReportState, StoredTrial } from '../ledger/trial-rows.ts';
import type { Verdict } from '../ledger/trials.ts';
import { recordVersion, type TrialRecord } from '../record/trial-record.ts';
import { plural } from '../text/quantities.ts';

/**
 * What the ledger has of a trial: the state of its report, but `sent` whenever the service may have it,
 * because it accepted it or because an answer was lost.
 */
export type InLedger = NonNullable<StoredTrial['report']>;

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

/** The state of a report after an action. */
const becomes: Partial<Record<Action, ReportState>> = {
  send: 'queued',
  deliver: 'delivered',
  supersede: 'superseded',
};

/** What became of a report, and the answer or the record that says why. */
export interface Delivered {
  state: ReportState;
  answer?: string | undefined;
}

export interface ReconcileParts {
  client: Client;
  ledger: Ledger;
  /** Receives messages for the user. */
  note(message: string): void;
  /** Receives what became of each report that was pending. */
  observe?(report: StoredTrial, delivered: Delivered): void;
}

/** What is said of the trials that changed although no report of them was pending. */
const messages = {
  lost: (trials: string) =>
    `the service has no result of ${trials} whose reports it had accepted; they are sent again`,
  taken: (trials: string) => `took the results of ${trials} from the service: the ledger lacked them`,
  superseded: (trials: string) =>
    `the service has other results of ${trials} than this ledger; they count there`,
  again: (trials: string) =>
    `the service has lost results that only it had: ${trials} must run again (offsite resume)`,
};

/** How many trials changed so. */
export type Reconciled = Record<keyof typeof messages, number>;

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
  const { ledger, note } = parts;
  const askedAt = ledger.records.now();
  for await (const [run, record] of recordsOf(runs, 'results', parts.client, signal)) {
    // One transaction: at the end of a batch, the reports of all trials of a run change at once.
    const acted = ledger.records.transaction(() => {
      // The record may be older than an answer that came meanwhile. A later time is of a clock that was set
      // back.
      const isNewer = ({ since }: StoredTrial) => since > askedAt && since <= ledger.records.now();
      return ledger.outbox
        .ofRun(run.key)
        .filter((trial) => !isNewer(trial) && (trial.report !== 'open' || open))
        .map((trial) => act(trial, record, parts));
    });
    for (const { changed, afterwards } of acted) {
      await afterwards?.();
      if (changed) total[changed]++;
    }
  }
  for (const [changed, message] of Object.entries(messages)) {
    const count = total[changed as keyof Reconciled];
    if (count > 0) note(message(plural(count, 'trial')));
  }
  return total;
}

/** What was done about a trial. */
interface Acted {
  /** What is counted of it. */
  changed?: keyof Reconciled;
  /** What follows once the transaction is on disk. */
  afterwards?: () => Promise<void> | void;
}

/** Does what the table says, within a transaction. */
function act(
  trial: StoredTrial,
  record: ListedRun<'results'> | undefined,
  { ledger, observe }: ReconcileParts,
): Acted {
  const { key, report: state } = trial;
  if (state === undefined) return {};
  const hasReport = state !== 'open' && state !== 'taken';
  // A report that was refused at once did not arrive; its record is read because of that.
  const has = state !== 'queued' && state !== 'sent' ? state : trial.sent ? 'sent' : 'queued';
  const { shown, listed } = trialIn(record, trial.ordinal, () =>
    hasReport ? readBody(key, ledger) : undefined,
  );
  const action = actions[has][shown];
  if (action === 'take' && record && listed) {
    const { verdict, result } = resultFromService(record, listed);
    return { changed: 'taken', afterwards: () => ledger.trials.take(key, verdict, result) };
  }
  if (action === 'run' && state === 'taken') {
    ledger.queue.takeBack([trial], 'the service has lost its result');
    return { changed: 'again' };
  }
  const next = becomes[action];
  // What is queued already keeps its turn.
  if (next === undefined || next === state) return {};
  const why = whyOf(next === 'superseded' ? 'other' : shown, listed);
  const answer = next === 'queued' ? `${trial.answer ?? 'the service accepted it'}; ${why}` : why;
  const waitMs = state === 'sent' ? unseenMs(trial.tries) : 0;
  ledger.outbox.become(key, next, { answer, nextAt: ledger.records.now() + waitMs });
  if (state === 'queued' || state === 'sent' || state === 'parked')
    return { afterwards: () => observe?.(trial, { state: next, answer }) };
  if (next === 'delivered') return {};
  return { changed: next === 'queued' ? 'lost' : 'superseded' };
}

/** A report; without content to compare if our disk has lost it. */
function readBody(trial: TrialKey, { outbox }: Ledger): ReportedTrial {
  try {
    return outbox.body(trial);
  } catch (error) {
    if (isUnreadable(error)) return { outcome: {} } as ReportedTrial;
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

/** What a record shows, for people; undefined if that is our result. */
function whyOf(shown: AtService, listed: ServiceTrial | undefined): string | undefined {
  const { sandboxId, status } = listed ?? {};
  if (shown === 'ours') return undefined;
  if (shown === 'bare') return 'the service shows no content to compare';
  if (shown === 'absent') return 'it does not list the run';
  if (shown === 'open') return 'it lists the trial without a result';
  if (shown === 'unclear')
    return listed
      ? `it shows the status ${status}, which Offsite does not know`
      : 'it lists no trials of the run';
  const from = sandboxId === undefined ? '' : ` from the sandbox ${sandboxId.slice(0, 12)}`;
  return `the service has another result of the trial${from} (${status ?? 'unknown status'})`;
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
  const { outbox, records } = ledger;
  const offered = outbox
    .pending()
    .filter((one) => one.service === service && one.report === 'parked')
    .filter(({ since, refused }) => since < records.now() - refusedMs || refused !== versionOf());
  for (const { key } of offered) outbox.become(key, 'queued', { answer: 'the service may take it now' });
  if (offered.length > 0) note(`offers ${plural(offered.length, 'refused result')} to the service again`);
  const all = outbox.runs(service, 'shown');
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

/**
 * The service's records of runs, with these parts; undefined for those that it does not list. Reads page
 * after page of each case until all its runs are found.
 */
export async function* recordsOf<Known extends KnownRun, Parts extends 'results' | 'setup'>(
  runs: readonly Known[],
  parts: Parts,
  client: Client,
  signal: AbortSignal | undefined,
): AsyncGenerator<[Known, ListedRun<Parts> | undefined]> {
  for (const [caseId, ofCase] of Map.groupBy(runs, (run) => run.caseId)) {
    const wanted = new Map(ofCase.map((run) => [run.id, run]));
    const options = { ...(signal && { signal }), parts, of: ({ id }: ListedRun) => wanted.has(id) };
    try {
      for await (const record of client.runs({ caseId }, options)) {
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

/**
 * What a service's record shows of a trial, and the trial in it.
 *
 * @param report what the ledger would report of the trial; read only if there is something to compare
 */
export function trialIn(
  run: ListedRun<'results'> | undefined,
  ordinal: number,
  report: () => ReportedTrial | undefined,
): { shown: AtService; listed?: ServiceTrial } {
  if (run === undefined) return { shown: 'absent' };
  if (run.trials === undefined) return { shown: 'unclear' };
  const listed = run.trials.find((trial) => trial.ordinal === ordinal);
  // A service may list a trial only after it is recorded.
  if (listed === undefined) return { shown: 'open' };
  if (openStatuses.has(listed.status)) return { shown: 'open', listed };
  if (!recordedStatuses.has(listed.status) && !hasContent(listed)) return { shown: 'unclear', listed };
  const own = report();
  return { shown: own === undefined ? 'other' : compared(listed, own), listed };
}

/**
 * Removes trials for good that a person canceled, where the service shows that they ended elsewhere. Resolves
 * with these. Rejects if the service cannot be asked.
 */
export async function leaveEnded(
  canceled: readonly StoredTrial[],
  { ledger: { queue, records }, client }: Pick<ReconcileParts, 'ledger' | 'client'>,
  signal: AbortSignal,
): Promise<StoredTrial[]> {
  const runs = new Map(canceled.map(({ run: key, runId: id, caseId }) => [key, { key, id, caseId }]));
  const ended: StoredTrial[] = [];
  for await (const [{ key: run }, record] of recordsOf([...runs.values()], 'results', client, signal)) {
    const isEnded = ({ ordinal }: StoredTrial) => trialIn(record, ordinal, () => undefined).shown === 'other';
    ended.push(...canceled.filter((trial) => trial.run === run && isEnded(trial)));
  }
  records.transaction(() => {
    queue.takeBack(ended, 'it ended elsewhere');
    queue.withdraw(
      ended.map(({ key }) => key),
      'elsewhere',
    );
  });
  return ended;
}

const openStatuses: ReadonlySet<string> = new Set(['queued', 'running']);
const recordedStatuses: ReadonlySet<string> = new Set(['reported', 'completed', 'voided']);

/** Whether Offsite knows what a trial's status means. */
export function isKnownStatus(status: string): boolean {
  return openStatuses.has(status) || recordedStatuses.has(status);
}

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

/**
 * The result of a trial that the service has and this ledger lacks, for example because the ledger was
 * restored from a backup: only what the service's record shows of it.
 */
function resultFromService(
  run: ListedRun<'results'>,
  trial: ServiceTrial,
): { verdict: Verdict; result: TrialRecord } {
  const shown = verdictIn(run, trial);
  const verdict = shown ?? 'void';
  const message = 'the ledger lost this trial, and the service shows that it has a result, but not which one';
  const at = Date.parse(run.finishedAt ?? run.startedAt ?? '') || 0;
  const { sandboxId, exitCode, filesChanged, artifacts, verifySteps } = trial;
  return {
    verdict,
    result: {
      version: recordVersion,
      verdict,
      fromService: true,
      ...(!shown && { cause: { kind: 'infrastructure', phase: 'collect', message } }),
      startedAt: at,
      finishedAt: at,
      phases: [],
      modelUnmeasured: true,
      ...(sandboxId !== undefined && { sandboxId }),
      ...(exitCode !== undefined && { harness: { ended: 'exited', exitCode } }),
      ...(filesChanged && { filesChanged }),
      ...(artifacts && { artifacts }),
      ...(verifySteps && {
        verifySteps: verifySteps.map((step) => ({ ...step, output: '', outputTruncated: false })),
      }),
    },
  };
}

/** Undefined if the record does not show it. */
function verdictIn(
  { distribution, trials = [] }: ListedRun<'results'>,
  { status, voidFields = [], verifySteps = [], validations = [] }: ServiceTrial,
): Verdict | undefined {
  if (status === 'voided' || voidFields.includes('passed')) return 'void';
  const checks = [
    ...verifySteps.map(({ exitCode }) => exitCode === 0),
    ...validations.map(({ exitCode, judgment: { score = -Infinity, threshold = -Infinity } = {} }) => {
      return exitCode === 0 && score >= threshold;
    }),
  ];
  if (checks.length > 0) return checks.every(Boolean) ? 'passed' : 'failed';
  // Without its checks, only a run whose trials all ended in the same way tells.
  if (distribution?.passed === trials.length) return 'passed';
  return distribution?.failed === trials.length ? 'failed' : undefined;
}
