import type { BackoffLimits } from '../../base/backoff.ts';

/** Milliseconds between two attempts to restore a broken connection to the engine. */
export const connectionWaits: BackoffLimits = { first: 1_000, longest: 30_000 };
