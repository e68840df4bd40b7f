import { messageOf, OffsiteError } from '../base/offsite-error.ts';
import type { GatewaySession, ModelAccount } from '../gateway/gateway.ts';
import type { Cause, PhaseName } from '../record/cause.ts';
import type { TrialRecord } from '../record/trial-record.ts';
import { TrialFailure } from './failure.ts';
import type { TrialSpec } from './spec.ts';

/** Throws if a replayed model had no answer: whatever the harness did then says nothing about the agent. */
export function refuseMissed(session: GatewaySession | undefined): void {
  const cause = missedCause(session, 'harness');
  if (cause) throw new TrialFailure(cause);
}

/** The cause if a replayed model of a trial, such as a judge, had no answer. */
export function missedCause(session: GatewaySession | undefined, phase: PhaseName): Cause | undefined {
  if (!session?.replayMissed.aborted) return undefined;
  const { reason } = session.replayMissed;
  const hint = reason instanceof OffsiteError ? reason.hint : undefined;
  return { kind: 'replay', phase, message: [messageOf(reason), hint].filter(Boolean).join('. ') };
}

/** How many answers of a trial were recorded ones. Undefined if none was, and the trial is not a fork. */
export function replayOf(
  { exchanges }: Pick<ModelAccount, 'exchanges'>,
  planned: TrialSpec['replay'],
): TrialRecord['replay'] {
  const replayed = exchanges.flatMap((exchange) => exchange.replayed ?? []);
  const of = planned?.fork?.name ?? replayed[0]?.of;
  if (of === undefined) return undefined;
  const live = exchanges.filter((exchange) => exchange.responseBytes > 0 && !exchange.replayed).length;
  const changed = replayed.filter(({ how }) => how === 'conversation').length;
  return {
    of,
    answered: replayed.length,
    ...(planned?.fork && { forkedAt: planned.fork.at }),
    ...(planned?.fork?.fromHarness !== undefined && { fromHarness: planned.fork.fromHarness }),
    ...(changed > 0 && { changed }),
    ...(live > 0 && { live }),
  };
}
