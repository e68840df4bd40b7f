import { readPlan } from '../agent/stored-plan.ts';
import { messageOf } from '../base/offsite-error.ts';
import type { StoredBatch } from '../ledger/batches.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Checks } from './checks.ts';
import type { AuditedTrial } from './evidence-of-trial.ts';

/** The trials are those that the definition asks for, each once, and none is a copy of another one. */
export function checkBatch(
  batch: StoredBatch,
  {
    ledger,
    definition = batch.plan,
    seen,
  }: { ledger: Ledger; definition: string | undefined; seen: readonly AuditedTrial[] },
  checks: Checks,
): void {
  checkNumber(batch, definition, ledger, checks);
  const says = 'each trial ran in a sandbox of its own';
  const sandboxes = new Map<string, string>();
  for (const { trial, record } of seen) {
    if (record.sandboxId === undefined) continue;
    const name = `${trial.caseId}/${trial.variant}#${trial.ordinal}`;
    const other = sandboxes.get(record.sandboxId);
    if (other !== undefined)
      checks.contradicted(`sandboxId of ${name}`, says, 'a sandbox of its own', `that of ${other}`);
    else sandboxes.set(record.sandboxId, name);
  }
}

function checkNumber(
  { key }: StoredBatch,
  definition: string | undefined,
  ledger: Ledger,
  checks: Checks,
): void {
  if (definition === undefined) {
    checks.missed('whether trials are missing: the definition of the batch was not kept');
    return;
  }
  const says = 'the trials are those that the definition asks for';
  try {
    const { plan } = readPlan(ledger.blobs.readJson(definition));
    const runs = ledger.batches.runs(key);
    for (const { request } of plan.cases)
      for (const [variantIndex, { name }] of plan.variants.entries()) {
        const own = runs.filter((run) => run.caseId === request.id && run.variantIndex === variantIndex);
        checks.same(
          `${request.id}/${name}`,
          says,
          '1 run',
          `${own.length} run${own.length === 1 ? '' : 's'}`,
        );
        for (const run of own)
          checkOrdinals(`${request.id}/${name}`, says, run.key, plan.trials, ledger, checks);
      }
    const unknown = runs.filter(
      ({ caseId, variantIndex }) =>
        !plan.cases.some(({ request }) => request.id === caseId) || !plan.variants[variantIndex],
    );
    for (const { caseId } of unknown)
      checks.contradicted(caseId, says, 'a case of the definition', 'another');
  } catch (error) {
    checks.contradicted('definition', 'the definition can be read', 'a definition', messageOf(error));
  }
}

function checkOrdinals(
  name: string,
  says: string,
  run: number,
  wanted: number,
  ledger: Ledger,
  checks: Checks,
): void {
  // Withdrawn ones too, which lists leave out.
  const rows = ledger.records.all('SELECT ordinal, result FROM trials WHERE run = ? ORDER BY ordinal', run);
  const ordinals = new Set(rows.map(({ ordinal }) => Number(ordinal)));
  for (let ordinal = 0; ordinal < wanted; ordinal++)
    if (!ordinals.has(ordinal)) checks.contradicted(`${name}#${ordinal}`, says, 'a trial', 'none');
  for (const ordinal of ordinals)
    if (ordinal >= wanted) checks.contradicted(`${name}#${ordinal}`, says, `${wanted} trials`, 'one more');
  const open = rows.filter(({ result }) => result === null).length;
  if (open > 0) checks.missed(`${open} of the trials of ${name}: they have no result`);
}
