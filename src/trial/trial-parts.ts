import type { Clock } from '../clock.ts';
import type { BudgetAccount, Gateway } from '../gateway/gateway.ts';
import type { Runner } from '../harness/runner.ts';
import type { BlobStore } from '../ledger/blobs.ts';
import type { Budget } from '../suite/model-config.ts';
import type { Sandboxes } from './sandboxes.ts';

/** What a trial works with. All trials of a batch share it. */
export interface TrialParts {
  sandboxes: Sandboxes;
  runners: readonly Runner[];
  blobs: BlobStore;
  clock: Clock;
  gateway: Gateway;
  /** The budgets of one trial's models, and of the whole batch. */
  budgets: { trial: Budget; batch: BudgetAccount | undefined };
}
