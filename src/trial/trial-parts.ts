import type { Clock } from '../clock.ts';
import type { BudgetAccount, Gateway } from '../gateway/gateway.ts';
import type { Runner } from '../harness/runner.ts';
import type { BlobStore } from '../ledger/blobs.ts';
import type { Budget } from '../suite/model-config.ts';
import type { Sandboxes } from './sandboxes.ts';

/** What a trial works with; the same for all trials of a batch. */
export interface TrialParts {
  sandboxes: Sandboxes;
  runners: readonly Runner[];
  blobs: BlobStore;
  clock: Clock;
  gateway: Gateway;
  /** What the models of one trial, and of the whole batch, may use. */
  budgets: { trial: Budget; batch: BudgetAccount | undefined };
}
