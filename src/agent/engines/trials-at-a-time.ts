import type { Engine } from '../../engine/engine.ts';
import { roomOf } from '../trial-size.ts';
import { enginesOf, type SomeEngines } from './check.ts';

/**
 * Trials at a time that cores and memory of the engine's machine allow, for the largest of the sandboxes. At
 * least one.
 */
export function concurrencyFor(
  { capabilities }: Engine,
  sandboxes: readonly { cpus: number; memory: number }[],
): number {
  const cpus = Math.max(...sandboxes.map((sandbox) => sandbox.cpus));
  const memory = Math.max(...sandboxes.map((sandbox) => sandbox.memory));
  const byCores = Math.floor(capabilities.cpus / cpus);
  const byMemory = Math.floor(roomOf(capabilities).memory / memory);
  return Math.max(1, Math.min(byCores, byMemory));
}

/** The same for several engines together, some of which may have a limit of trials. */
export function concurrencyOn(
  engines: SomeEngines,
  sandboxes: readonly { cpus: number; memory: number }[],
): number {
  return enginesOf(engines).reduce((sum, engine) => sum + trialsOn(engine, sandboxes), 0);
}

/** The engine's own limit of trials, or what its cores and memory allow. */
export function trialsOn(engine: Engine, sandboxes: readonly { cpus: number; memory: number }[]): number {
  return engine.trials ?? concurrencyFor(engine, sandboxes);
}
