import { collect } from './collect.ts';
import { harness } from './harness.ts';
import type { Phase } from './phase.ts';
import { validate } from './validate.ts';
import { verify } from './verify.ts';

/** A trial's way once its sandbox runs. */
export const phases: readonly Phase[] = [harness, collect, verify, validate];
