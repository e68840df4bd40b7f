import type { Clock } from '../../base/clock.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { PendingReport } from '../../ledger/outbox.ts';
import type { Trials } from '../../ledger/trials.ts';
import { readRecord } from '../../record/read-record.ts';
import type { PlatformTrials } from '../../service/platform.ts';
import { OutboxDelivery, type OutboxDeliveryParts, type Sent } from '../outbox-delivery.ts';

interface PlatformDeliveryParts extends OutboxDeliveryParts {
  trials: Trials;
  platform: Pick<PlatformTrials, 'complete'>;
}

/** Delivers the results of platform trials to the service of this process. */
export function platformDelivery(
  { outbox, trials }: Pick<Ledger, 'outbox' | 'trials'>,
  platform: Pick<PlatformTrials, 'complete'>,
  clock: Clock,
): OutboxDelivery {
  return new PlatformDelivery({ outbox, trials, clock, platform });
}

/** Hands over whole records. */
class PlatformDelivery extends OutboxDelivery {
  readonly #parts: PlatformDeliveryParts;

  constructor(parts: PlatformDeliveryParts) {
    super(parts);
    this.#parts = parts;
  }

  /** A result that the service already has counts as sent: a process died before it noted the delivery. */
  protected override async send({ trial, runId, ordinal }: PendingReport): Promise<Sent> {
    const { trials, platform } = this.#parts;
    await platform.complete(runId, ordinal, readRecord(trials.result(trial)));
    return { kind: 'delivered' };
  }
}
