import type { PendingReport } from '../../ledger/outbox.ts';
import type { Trials } from '../../ledger/trials.ts';
import { readRecord } from '../../record/read-record.ts';
import type { PlatformTrials } from '../../service/platform.ts';
import { OutboxDelivery, type OutboxDeliveryParts } from '../outbox-delivery.ts';

interface PlatformDeliveryParts extends OutboxDeliveryParts {
  trials: Trials;
  platform: Pick<PlatformTrials, 'complete'>;
}

/** Hands the results of platform trials to the service of this process, whole. */
export class PlatformDelivery extends OutboxDelivery {
  readonly #parts: PlatformDeliveryParts;

  constructor(parts: PlatformDeliveryParts) {
    super(parts);
    this.#parts = parts;
  }

  /** A result that the service has already, because the process died before it noted that, counts as sent. */
  protected override async send({ trial, runId, ordinal }: PendingReport): Promise<void> {
    const { trials, platform } = this.#parts;
    await platform.complete(runId, ordinal, readRecord(trials.result(trial)));
  }
}
