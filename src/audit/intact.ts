import { remembered } from '../base/deadline.ts';
import { ReportedTrial } from '../contract/report.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { StoredTrial } from '../ledger/trial-rows.ts';
import type { AuditedLevel, Contradiction } from '../record/audit.ts';
import { namedBlobs } from '../record/named-blobs.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { digestOfReport, digestOfSetup } from '../service/record/stored-trial.ts';
import { recordPath } from '../trial/collect/artifacts.ts';
import { Checks } from './checks.ts';
import type { AuditedTrial, IsLeftOut } from './evidence-of-trial.ts';

/** Something that must not be of the file that a batch comes from; or what could not be taken from it. */
export type EvidenceProblem = Contradiction | string;

/** Compares contents with the hashes by which trials name them. Each is read once for all trials. */
export function contentsOf({ blobs, workspaces }: Pick<Ledger, 'blobs' | 'workspaces'>) {
  const [ofBlobs, ofWorkspaces] = [
    remembered<Awaited<ReturnType<typeof blobs.verify>>>(),
    remembered<Awaited<ReturnType<typeof blobs.verify>>>(),
  ];
  return {
    blobs: (sha256: string) => ofBlobs(sha256, () => blobs.verify(sha256)),
    workspaces: (sha256: string) => ofWorkspaces(sha256, () => workspaces.verify(sha256)),
  };
}

type Contents = ReturnType<typeof contentsOf>;

/** Whether all that a trial names is there, as it was named. */
export async function intactLevel(
  { trial, record, report }: AuditedTrial,
  { ledger, contents, isLeftOut }: { ledger: Ledger; contents: Contents; isLeftOut: IsLeftOut },
): Promise<AuditedLevel> {
  const checks = new Checks();
  for (const { path, what, sha256, byteSize } of namedBlobs(record)) {
    const state = await contents.blobs(sha256);
    // What the statement itself calls missing is no forgery.
    if (state === 'missing' && isLeftOut(sha256)) checks.missed(`${what} is no longer kept`);
    else checks.same(path, 'the content is there, with its hash', 'whole', state);
    const size = state === 'whole' ? ledger.blobs.stat(sha256)?.byteSize : undefined;
    if (byteSize !== undefined && size !== undefined)
      checks.same(`${path}.byteSize`, 'the content has its size', byteSize, size);
  }
  await checkLeft(record, trial.key, { ledger, contents }, checks);
  if (report) {
    const read = ReportedTrial.safeParse(report);
    const [issue] = read.error?.issues ?? [];
    const place = `report.${issue?.path.join('.')}`;
    if (issue) checks.contradicted(place, 'a report has its form', issue.message, 'another');
    const named = report.outcome.artifacts?.find(({ path }) => path === recordPath);
    if (named)
      checks.same('report.outcome.artifacts', 'the report names this record', trial.result, named.sha256);
    else checks.missed('its report does not name its record: an older Offsite made it');
  }
  return checks.level('intact');
}

/** The archive that was kept is the one that the record names. */
async function checkLeft(
  { left }: TrialRecord,
  key: number,
  { ledger, contents }: { ledger: Ledger; contents: Contents },
  checks: Checks,
): Promise<void> {
  const kept = ledger.workspaces.of(key);
  const says = 'the workspace is the one that the record names';
  if (left?.kind !== 'archive') {
    if (kept && kept.kind !== left?.kind) checks.contradicted('left', says, left?.kind, kept.kind);
    return;
  }
  if (kept) checks.same('left.sha256', says, left.sha256, kept.name);
  if (!kept || kept.removedAt !== undefined) {
    checks.missed('its workspace is no longer kept');
    return;
  }
  const state = await contents.workspaces(left.sha256);
  checks.same('left', 'the workspace is there, with its hash', 'whole', state);
}

/** What a service can compare with what it has itself. Undefined where it is missing or cannot be read. */
export interface Committed {
  /** The sha256 of the record. */
  record: string | undefined;
  report: string | undefined;
  setup: string | undefined;
}

/** Digests of what the ledger has of the trials of a batch. */
export function committedBy({ batches, blobs, outbox }: Ledger, { key }: StoredBatch) {
  const setups = new Map(
    batches
      .runs(key)
      .map(({ key, setup = '' }) => [key, digestOf(() => digestOfSetup(blobs.readJson(setup)))]),
  );
  return (trial: StoredTrial): Committed => ({
    record: trial.result,
    report: digestOf(() => digestOfReport(trial.runId, ReportedTrial.parse(outbox.body(trial.key)))),
    setup: setups.get(trial.run),
  });
}

function digestOf(make: () => string): string | undefined {
  try {
    return make();
  } catch {
    // The levels of the audit say what is wrong.
    return undefined;
  }
}
