import type { Case } from '../../contract/definition.ts';
import type { RunKey } from '../../ledger/batches.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { platformLock, platformService } from '../../ledger/platform.ts';
import type { OpenPlatformRun } from '../../service/platform.ts';
import { mayBeBeingStarted } from '../find-started.ts';
import type { FoundRunDetails } from '../specify.ts';

const scope = { service: platformService, lock: platformLock };

/**
 * Puts the trials of a run that have not ended into the ledger's queue, except those that it has already.
 * Resolves with false if the run's batch is just being started by another process; ask again then.
 */
export async function adoptRun(run: OpenPlatformRun, ledger: Ledger): Promise<boolean> {
  const key = ledger.foundRuns.find(platformService, run.batchId, run.id);
  if (key === undefined && mayBeBeingStarted(ledger, platformService)) return false;
  const setup = await ledger.blobs.putJson(run.setup);
  const ended = new Set(run.ended);
  const ordinals = Array.from({ length: run.trials }, (_, ordinal) => ordinal).filter(
    (one) => !ended.has(one),
  );
  if (key !== undefined) {
    // `offsite service start` planned it, or an earlier executor adopted it.
    ledger.queue.add([{ run: key, setup, variantId: run.variant.id, ordinals }]);
    ledger.foundRuns.adoptOpen(key, ordinals);
    reconcile(run, key, { ledger, ended, open: ordinals });
    return true;
  }
  const details: FoundRunDetails = { variant: run.variant, definition: withoutTexts(run.case) };
  ledger.foundRuns.adopt({
    service: platformService,
    batchId: run.batchId,
    suite: run.suite.name,
    id: run.id,
    taskIndex: run.taskIndex,
    caseId: run.case.id,
    caseName: run.case.name,
    variant: run.variant.id,
    details,
    setup,
    ordinals,
  });
  return true;
}

/**
 * Ledger and service are two files, and either may be restored from a backup. A trial that the service has is
 * not run again, and a result that it no longer has is handed over again.
 */
function reconcile(
  { id }: OpenPlatformRun,
  key: RunKey,
  { ledger, ended, open }: { ledger: Ledger; ended: ReadonlySet<number>; open: readonly number[] },
): void {
  const elsewhere = ledger.queue.openTrials(scope, id).filter(({ ordinal }) => ended.has(ordinal));
  if (elsewhere.length > 0) {
    const keys = elsewhere.map((trial) => trial.key);
    ledger.queue.withdraw(keys, 'elsewhere');
  }
  const lost = ledger.outbox
    .ofRun(key)
    .filter(({ ordinal, state }) => state === 'delivered' && open.includes(ordinal));
  for (const { trial } of lost) ledger.outbox.become(trial, 'queued');
}

/** The setup has the texts, with the variables filled in. */
function withoutTexts({ id, name, variables, user, validator }: Case): Case {
  return {
    id,
    name,
    ...(variables && { variables }),
    ...(user && { user }),
    ...(validator && {
      validator: {
        name: validator.name,
        source: '',
        ...(validator.capture !== undefined && { capture: validator.capture }),
        ...(validator.manifest && { manifest: validator.manifest }),
      },
    }),
  };
}
