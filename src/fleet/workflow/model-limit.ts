import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineUpdate,
  setHandler,
} from '@temporalio/workflow';
import { type LimitInput, updates } from './messages.ts';
import { type Renewal, Shares } from './shares.ts';

/** Renewals until the workflow continues as new: its history has five events for each. */
const renewals = 1_000;
const idleMs = 600_000;

/** Holds the permits for requests to one model, for the whole fleet. Ends when nobody asks the model for a while. */
export async function offsiteModelLimit({ termMs, holders }: LimitInput): Promise<void> {
  const shares = new Shares(termMs, holders);
  let count = 0;
  setHandler(defineUpdate<number, [Renewal]>(updates.renew), (renewal) => {
    count++;
    return shares.renew(renewal, Date.now());
  });
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
