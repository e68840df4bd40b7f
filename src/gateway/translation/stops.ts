import type { NeutralStop } from './neutral-answer.ts';

/** A wire's names for why an answer ended. */
export type Stops = Readonly<Record<string, NeutralStop>>;

/** Undefined if the wire has no such name. */
export function stopNamed(stops: Stops, reason: unknown): NeutralStop | undefined {
  return typeof reason === 'string' && Object.hasOwn(stops, reason) ? stops[reason] : undefined;
}
