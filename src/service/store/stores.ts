import type { DatabaseSync } from 'node:sqlite';
import { type BaselineStore, createBaselineStore } from './baselines.ts';
import { type BatchStore, createBatchStore } from './batches.ts';
import { type CaseStore, createCaseStore } from './cases.ts';
import { createKeyStore, type KeyStore } from './keys.ts';
import { createLeaseStore, type LeaseStore } from './leases.ts';
import { createPlatformStore, type PlatformStore } from './platform-runs.ts';
import { createPromptStore, type PromptStore } from './prompts.ts';
import { createRunStore, type RunStore } from './runs.ts';
import { createTrialStore, type TrialStore } from './trials.ts';

/** Everything in service.db, by subject. */
export interface Stores {
  keys: KeyStore;
  batches: BatchStore;
  runs: RunStore;
  trials: TrialStore;
  platform: PlatformStore;
  baselines: BaselineStore;
  leases: LeaseStore;
  cases: CaseStore;
  prompts: PromptStore;
}

export function createStores(database: DatabaseSync, now: () => number): Stores {
  return {
    keys: createKeyStore(database, now),
    batches: createBatchStore(database),
    runs: createRunStore(database),
    trials: createTrialStore(database),
    platform: createPlatformStore(database),
    baselines: createBaselineStore(database),
    leases: createLeaseStore(database),
    cases: createCaseStore(database),
    prompts: createPromptStore(database),
  };
}
