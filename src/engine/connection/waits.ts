import type { BackoffLimits } from '../../backoff.ts';

/** Milliseconds between two tries of what needs a connection to the engine that broke. */
export const connectionWaits: BackoffLimits = { first: 1_000, longest: 30_000 };
