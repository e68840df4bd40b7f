import type { Scenario } from './scenario.ts';

/**
 * The Temporal server as the model sees it: each change of a workflow's state waits for the one before it in
 * the same lane, and all changes wait for the database. Heartbeats are changes too. There are too many to
 * simulate each of them, so they reduce what lane and database have left for the other changes.
 */
export class ServerModel {
  readonly #scenario: Scenario;
  /** When each workflow's last change is done. */
  readonly #workflowDone: Float64Array;
  readonly #running: Int32Array;
  /** Seconds between two heartbeats of a trial, those for its phases among them. */
  readonly #every: number;
  #databaseDone = 0;
  #allRunning = 0;
  /** Changes without heartbeats. */
  changes = 0;
  /**
   * The greatest share of a workflow's time that its heartbeats took. From 1 on, it cannot keep up with them.
   */
  peakHeartbeatLoad = 0;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#workflowDone = new Float64Array(scenario.lanes);
    this.#running = new Int32Array(scenario.lanes);
    const { heartbeat, trial } = scenario;
    this.#every = 1 / (1 / heartbeat.every + heartbeat.phases / trial.mean);
  }

  get running(): number {
    return this.#allRunning;
  }

  /** Changes per second that the heartbeats of all running trials cause. */
  get heartbeatsPerSecond(): number {
    return this.#allRunning / this.#every;
  }

  begins(workflow: number): void {
    this.#allRunning++;
    this.#running[workflow] = this.#runningOf(workflow) + 1;
    this.peakHeartbeatLoad = Math.max(this.peakHeartbeatLoad, this.#heartbeatLoad(workflow));
  }

  ends(workflow: number): void {
    this.#allRunning--;
    this.#running[workflow] = this.#runningOf(workflow) - 1;
  }

  /** Changes the state of a workflow. Returns when that is done. */
  change(workflow: number, now: number): number {
    const { server } = this.#scenario;
    this.changes++;
    const own = server.change / free(this.#heartbeatLoad(workflow));
    const ownDone = Math.max(now, this.#workflowDone[workflow] ?? 0) + own;
    this.#workflowDone[workflow] = ownDone;
    const share = 1 / server.changesPerSecond / free(this.heartbeatsPerSecond / server.changesPerSecond);
    this.#databaseDone = Math.max(now, this.#databaseDone) + share;
    return Math.max(ownDone, this.#databaseDone);
  }

  #runningOf(workflow: number): number {
    return this.#running[workflow] ?? 0;
  }

  #heartbeatLoad(workflow: number): number {
    return (this.#runningOf(workflow) / this.#every) * this.#scenario.server.change;
  }
}

/** The share that a load leaves free. If nothing is left, a real server answers late or not at all. */
function free(load: number): number {
  return Math.max(0.01, 1 - load);
}
