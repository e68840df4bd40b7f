import { type Resumable, resumable } from '../agent/resume-batch.ts';
import { OffsiteError } from '../base/offsite-error.ts';
import { fittingBatches, onlyId } from '../ledger/find.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { platformService } from '../ledger/platform.ts';
import type { StoredSet } from '../ledger/sets.ts';

/** The batches and sets to resume. Throws an `input` error for a batch that cannot be resumed. */
export function chosenToResume(ledger: Ledger, service: string, reference: string | undefined): Resumable[] {
  const open = resumable(ledger, service);
  const set = reference === undefined ? undefined : setNamed(ledger, reference);
  if (set) return chosenSet(set, open, service);
  if (reference === undefined) {
    if (open.length === 0) refuseElsewhere(ledger, service);
    return open;
  }
  const found = fittingBatches(ledger.records, reference);
  const id = onlyId(found, reference);
  const named = open.filter((one) => one.kind === 'batch' && one.batch.id === id);
  if (named.length > 0) return named;
  const elsewhere = found.find((batch) => batch.service !== service);
  if (elsewhere?.service === platformService) throw platformsBatch(`batch ${id} is a platform batch`);
  const [message, hint] =
    found.length === 0
      ? [`this machine has no batch ${id}`, '`offsite data batches` lists those that it has.']
      : elsewhere
        ? [`batch ${id} is of the service ${elsewhere.service}, not of ${service}`, 'Configure that service.']
        : [`batch ${id} is finished`, '`offsite data outbox` shows whether all of it is reported.'];
  throw new OffsiteError(message, { code: 'NOTHING_TO_RESUME', kind: 'input', hint });
}

/** The set that a reference names, or that has the batch that it names. */
function setNamed(ledger: Ledger, reference: string): StoredSet | undefined {
  const set = ledger.sets.find(reference);
  if (set) return set;
  const batches = fittingBatches(ledger.records, reference);
  return batches.length === 1 && batches[0] ? ledger.sets.ofBatch(batches[0].key) : undefined;
}

function chosenSet(set: StoredSet, open: readonly Resumable[], service: string): Resumable[] {
  const found = open.filter((one) => one.kind === 'set' && one.set.key === set.key);
  if (found.length > 0) return found;
  const [message, hint] =
    set.service === service
      ? [`${set.id} is finished`, '`offsite data outbox` shows whether all of it is reported.']
      : [`${set.id} is of the service ${set.service}, not of ${service}`, 'Configure that service.'];
  throw new OffsiteError(message, { code: 'NOTHING_TO_RESUME', kind: 'input', hint });
}

/**
 * Throws if all unfinished batches belong to other services. Without a configuration, a command uses the
 * embedded service, which knows no batch of another service.
 */
function refuseElsewhere(ledger: Ledger, service: string): void {
  const all = [...ledger.batches.open(), ...ledger.starts.open(), ...ledger.sets.open()];
  const elsewhere = [...new Set(all.map((one) => one.service))].filter((name) => name !== service);
  if (elsewhere.length === 0) return;
  if (elsewhere.every((name) => name === platformService))
    throw platformsBatch('the unfinished batches are platform batches');
  const others = `the unfinished batches belong to ${elsewhere.join(', ')}`;
  throw new OffsiteError(`nothing to resume at the service ${service}; ${others}`, {
    code: 'NOTHING_TO_RESUME',
    kind: 'input',
    hint: "Name the batch's configuration (--config, OFFSITE_CONFIG) or its service (OFFSITE_URL).",
  });
}

function platformsBatch(message: string): OffsiteError {
  return new OffsiteError(message, {
    code: 'NOTHING_TO_RESUME',
    kind: 'input',
    hint: '`offsite serve` with this data folder continues platform batches.',
  });
}

export function nameOf(what: Resumable): string {
  if (what.kind === 'set') return what.set.id;
  return what.kind === 'batch' ? `batch ${what.batch.id}` : `a batch of ${what.start.suite}`;
}
