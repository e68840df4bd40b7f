/** What a fleet is and does. Times are in seconds, rates in 1/s. */
export interface Scenario {
  trials: number;
  workers: number;
  /** Trials that a worker runs at a time. */
  capacity: number;
  /** How long a trial has a sandbox, with start and grading: a lognormal distribution that ends at `most`, a
   *  trial's timeout. `spread` is the standard deviation divided by the mean, both without that end. */
  trial: { mean: number; spread: number; most: number };
  /** Trials that may run at a time because of a model's limit: `maxParallel` / the share of a trial's time in
   *  which it waits for the model. */
  mostRunning: number;
  /** A worker dies after `meanUp` (exponential), with its trials, and is back after `down`. */
  failure: { meanUp: number; down: number };
  /** How often a trial in flight tells of itself, and after what silence it is given to another worker. */
  heartbeat: { every: number; timeout: number };
  /** Workflows that share the batch, each with `trials / workflows` of them. */
  workflows: number;
  /** Trials that a workflow keeps scheduled or running. */
  window: number;
  /** After so many trials a workflow waits until none is open, and continues as new. */
  generation: number;
  server: {
    /** One change of a workflow's state in the database. Changes of one workflow happen one after another. */
    change: number;
    /** Changes of all workflows that the server and its database can do. */
    changesPerSecond: number;
    /** From a workflow task's start to its answer, in the process that runs the workflow. */
    task: number;
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
  trial: { mean: 300, spread: 1, most: 1800 },
  mostRunning: Number.POSITIVE_INFINITY,
  failure: { meanUp: 7 * 24 * 3600, down: 300 },
  heartbeat: { every: 10, timeout: 60 },
  workflows: 100,
  window: 1_000,
  generation: 10_000,
  server: { change: 0.005, changesPerSecond: 20_000, task: 0.02 },
  reportsPerSecond: 1_000,
  seed: 1,
};
