import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineUpdate,
  setHandler,
} from '@temporalio/workflow';
import { type Renewal, Shares } from '../../base/shares.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import { type LimitInput, updates } from './messages.ts';

/** Renewals until the workflow continues as new: its history has five events for each. */
const renewals = 1_000;
const idleMs = 600_000;

/**
 * Refuses a renewal that Offsite would not send, before it is in the history, where it would stop the
 * workflow for good.
 */
function isRenewal(given: Renewal): boolean {
  if (typeof given !== 'object' || given === null) return false;
  const { holder, sequence, keep, wants, limit } = given;
  const isCount = (value: number) => Number.isSafeInteger(value) && value >= 0;
  const most = fleetMessages.count.permits;
  return (
    typeof holder === 'string' &&
    holder.length <= fleetMessages.bytes.text &&
    isCount(sequence) &&
    [keep, wants].every((value) => isCount(value) && value <= most) &&
    isCount(limit) &&
    limit >= 1
  );
}

/**
 * Holds the permits for requests to one model, for the whole fleet. Ends when nobody asks the model for a
 * while.
 */
export async function offsiteModelLimit({ termMs, holders }: LimitInput): Promise<void> {
  const shares = new Shares(termMs, holders);
  let count = 0;
  const renew = (renewal: Renewal) => {
    count++;
    return shares.renew(renewal, Date.now());
  };
  const validator = (renewal: Renewal) => {
    if (!isRenewal(renewal)) throw new Error('this is not a renewal');
    if (!shares.holders.has(renewal.holder) && shares.holders.size >= fleetMessages.count.holders)
      throw new Error('too many ask for permits of this model');
  };
  setHandler(defineUpdate<number, [Renewal]>(updates.renew), renew, { validator });
  for (;;) {
    const before = count;
    const isLong = await condition(() => count >= renewals, idleMs);
    if (isLong) break;
    shares.expire(Date.now());
    if (count === before && shares.holders.size === 0) return;
  }
  await condition(allHandlersFinished);
  await continueAsNew<typeof offsiteModelLimit>({ termMs, holders: [...shares.holders] });
}
