import type { Ledger } from '../../ledger/ledger.ts';
import { readRecord } from '../../record/read-record.ts';
import type { PlatformTrials } from '../../service/platform.ts';
import type { Sender } from '../sender.ts';

/**
 * Hands the records of platform trials to the service of this process. A result that the service already has
 * counts as delivered: a process died before it noted the delivery.
 */
export function platformSender(
  { trials }: Pick<Ledger, 'trials'>,
  platform: Pick<PlatformTrials, 'complete'>,
): Sender {
  return {
    async send({ trial, runId, ordinal }) {
      await platform.complete(runId, ordinal, readRecord(trials.result(trial)));
      return { kind: 'delivered' };
    },
  };
}
