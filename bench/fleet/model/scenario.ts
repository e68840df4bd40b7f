/** What a fleet is and does. Times are in seconds, rates in 1/s. */
export interface Scenario {
  trials: number;
  workers: number;
  /** Trials that a worker runs at a time, and those that it holds besides, to begin when one ends. */
  capacity: number;
  ahead: number;
  /**
   * How long a trial has a sandbox, with start and grading: a lognormal distribution that is cut off at
   * `most`, a trial's timeout. `spread` is the standard deviation divided by the mean, both without the
   * cut-off.
   */
  trial: { mean: number; spread: number; most: number };
  /** Trials that may run at a time because of a model's limit: `maxParallel` / the share of a trial's time in
   *  which it waits for the model. */
  mostRunning: number;
  /** A worker dies after `meanUp` (exponential), with its trials, and is back after `down`. */
  failure: { meanUp: number; down: number };
  /**
   * How often a held trial sends a heartbeat, how often it also does so because a phase begins, and after
   * what silence it is given to another worker.
   */
  heartbeat: { every: number; phases: number; timeout: number };
  /**
   * Lanes of workflows that share the batch, each with `trials / lanes` of them. A lane has one workflow
   * after another.
   */
  lanes: number;
  /** Trials that a lane keeps scheduled or held. */
  window: number;
  /**
   * The trials of one workflow. The next workflow begins when the last trial has ended or, with `overlaps`,
   * when the last trial is scheduled. Its start takes `changes` changes.
   */
  slice: { trials: number; overlaps: boolean; changes: number };
  server: {
    /** One change of a workflow's state in the database. Changes of one workflow happen one after another. */
    change: number;
    /** Changes of all workflows that the server and its database can do. */
    changesPerSecond: number;
    /** From a workflow task's start to its answer, in the process that runs the workflow. */
    task: number;
    /** From the server to a worker that polls. */
    poll: number;
  };
  /** Reports that the Eval Service takes. */
  reportsPerSecond: number;
  seed: number;
}

/** A large fleet with the trials of coding agents, on a self-hosted server of a usual size. */
export const usual: Scenario = {
  trials: 1_000_000,
  workers: 10_000,
  capacity: 2,
  ahead: 1,
  trial: { mean: 300, spread: 1, most: 1800 },
  mostRunning: Number.POSITIVE_INFINITY,
  failure: { meanUp: 7 * 24 * 3600, down: 300 },
  heartbeat: { every: 10, phases: 6, timeout: 60 },
  lanes: 40,
  window: 1_000,
  slice: { trials: 1_000, overlaps: true, changes: 40 },
  server: { change: 0.005, changesPerSecond: 20_000, task: 0.02, poll: 0.005 },
  reportsPerSecond: 1_000,
  seed: 1,
};
