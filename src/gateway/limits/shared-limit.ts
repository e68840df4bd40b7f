import { type Holder, type Renewal, Shares } from '../../base/shares.ts';
import { type LimitEvent, type LimitReason, type LimitState, newLimit, observe } from './limit-law.ts';

/** What all processes of a machine know about one model, as it is kept. */
export interface SharedLimit {
  state: LimitState;
  holders: [string, Holder][];
}

/** What one process reports to the others: its requests, and how they ended. */
export interface Turn {
  renewal: Renewal;
  events: readonly LimitEvent[];
}

/** What one process learns from the others. */
export interface Learned {
  shared: SharedLimit;
  /** Requests that this process may have in flight. */
  grant: number;
  /** Requests that the others have in flight. */
  others: number;
  /** The limit of all processes together. `moves`: its changes in this turn. */
  limit: number;
  /** The smallest maximum that any of the processes has configured. */
  most: number;
  moves: LimitMove[];
}

export interface LimitMove {
  /** Epoch milliseconds. */
  at: number;
  from: number;
  to: number;
  why: LimitReason;
}

/** Milliseconds after which the permits of a process that says nothing are given to others. */
export const termMs = 6_000;

/**
 * Takes the turn of one process: moves the limit by what its requests showed, and grants its part of the
 * limit.
 */
export function takeTurn(kept: SharedLimit | undefined, { renewal, events }: Turn, now: number): Learned {
  const holders = kept?.holders ?? [];
  const others = holders.filter(([name, { renewedAt }]) => {
    return name !== renewal.holder && now - renewedAt <= termMs;
  });
  const most = Math.min(renewal.limit, ...others.map(([, { limit }]) => limit));
  const state = kept?.state ?? newLimit(most, now);
  const moves: LimitMove[] = [];
  for (const event of events) {
    const from = state.limit;
    const why = observe(state, event, { most, now });
    if (why !== undefined) moves.push({ at: now, from, to: state.limit, why });
  }
  const limit = Math.min(most, state.limit);
  const shares = new Shares(termMs, holders, limit);
  const grant = shares.renew(renewal, now);
  return {
    shared: { state, holders: [...shares.holders] },
    grant,
    others: others.reduce((sum, [, { counted, wants }]) => sum + Math.min(counted, wants), 0),
    limit,
    most,
    moves,
  };
}
