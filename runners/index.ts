import type { Runner } from '../src/harness/runner.ts';
import { command } from './command/runner.ts';

/** Every harness this Offsite has. A new one is a folder here and a line in this list. */
export const runners: readonly Runner[] = [command];
