import type { Fate } from './fault-front.ts';
import type { Fault } from './inject.ts';

export interface NamedFault extends Fault {
  name: string;
}

/**
 * Points that a life of the agent gets to with the fault plan: before and after each transaction. In order:
 * the start is asked for, the batch is known, its trials are queued, each trial's attempt begins, its result
 * is kept, its report is delivered.
 */
export const pointsOfALife = 18;

const atReports = (name: string, ...fates: Fate[]): NamedFault => ({
  name,
  service: { operation: 'evals.reportTrial', fates },
});

const atStart = (name: string, ...fates: Fate[]): NamedFault => ({
  name,
  service: { operation: 'evals.start', fates },
});

export const killed = (point: number): NamedFault => ({
  name: 'agent killed at a state change',
  agent: { kind: 'kill', point },
});

export const filled = (point: number): NamedFault => ({
  name: 'disk full at a write',
  agent: { kind: 'fill', point },
});

export const setBack = (point: number): NamedFault => ({
  name: 'clock set back by a day',
  agent: { kind: 'jump', point },
});

export const serviceFaults: readonly NamedFault[] = [
  atReports('service answers 500 to a report', 500, 500, 500),
  atReports('service answers 429 to a report', 429, 429),
  atReports('service accepts a report, answer lost', 'cut-after', 'cut-after'),
  atReports('service cuts off before a report', 'cut-before', 'cut-before'),
  atReports('answer lost, then 409 to the same report', 'cut-after', 409),
  atStart('service starts the batch, answer lost', 'cut-after'),
  atStart('service answers 503 to the start', 503, 503),
];
