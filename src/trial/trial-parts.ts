import type { Clock } from '../base/clock.ts';
import type { BudgetAccount, Gateway } from '../gateway/gateway.ts';
import type { Cassette } from '../gateway/replay/cassette.ts';
import type { Runner } from '../harness/runner.ts';
import type { BlobStore } from '../ledger/blobs.ts';
import type { Budget } from '../suite/model-config.ts';
import type { PlannedReplay } from '../suite/plan.ts';
import type { KeepParts } from './left/keep-left.ts';
import type { Sandboxes } from './sandboxes.ts';

/** What a trial works with. All trials of a batch share it. */
export interface TrialParts {
  sandboxes: Sandboxes;
  runners: readonly Runner[];
  blobs: BlobStore;
  clock: Clock;
  gateway: Gateway;
  /** Opens a recording of the ledger. If not given, no trial is replayed. */
  cassette?: ((replay: PlannedReplay) => Cassette) | undefined;
  /** Where to keep what trials leave. If not given, nothing is kept. */
  keep?: KeepParts | undefined;
  /** The budgets of one trial's models, and of the whole batch. */
  budgets: { trial: Budget; batch: BudgetAccount | undefined };
}
