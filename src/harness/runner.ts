import type { TrajectoryEntry } from '../contract/report.ts';
import type { Container } from '../engine/container.ts';
import type { Profile } from '../suite/plan.ts';

/** The definition of one harness, as each folder under `runners/` exports it. */
export interface Runner {
  /** The harness's name in suite files and requests. */
  name: string;
  /** For people. */
  label: string;
  /** Drives the harness through one turn in a started sandbox. Throws only where the runner itself broke. */
  run(turn: Turn): Promise<HarnessRun>;
}

/** What a runner gets to work with. */
export interface Turn {
  container: Container;
  profile: Profile;
  /** The whole environment of the harness's process, prompt and variables included. */
  env: Record<string, string>;
  /** Absolute path in the sandbox; the harness's working folder. */
  workspace: string;
  timeoutMs: number;
  signal: AbortSignal;
}

/** What a runner brings back. */
export interface HarnessRun {
  ending: HarnessEnding;
  /** The commands the harness ran, in order. */
  trajectory: TrajectoryEntry[];
}

/** How the harness ended; its exit code does not decide the verdict. */
export type HarnessEnding =
  | { ended: 'exited'; exitCode: number }
  | { ended: 'timed-out'; afterMs: number }
  /** It wrote more than the sandbox may hold. */
  | { ended: 'out-of-disk' };
