import FlatQueue from 'flatqueue';
import { type Lottery, lottery } from './lottery.ts';
import type { Scenario } from './scenario.ts';
import { ServerModel } from './server.ts';

export interface Sample {
  /** Seconds since the start. */
  at: number;
  running: number;
  /** Changes in a second since the sample before, with heartbeats. */
  changesPerSecond: number;
}

export interface Simulated {
  /** Seconds until the last report is recorded. */
  makespan: number;
  /** Seconds that the work takes if every slot always has a trial, or a model's limit allows no more. */
  ideal: number;
  completed: number;
  /** Changes of workflows' states, without heartbeats. */
  changes: number;
  /** Trials that ended with their worker, and the seconds of work that were lost with them. */
  lost: { trials: number; seconds: number };
  /** The most trials that workers held at a time. */
  peakRunning: number;
  /** With heartbeats. */
  peakChangesPerSecond: number;
  /** Of one lane. From 1 on, the lane cannot keep up with its heartbeats. */
  peakHeartbeatLoad: number;
  samples: Sample[];
}

/** The approximate number of samples of a simulation. */
const sampleCount = 200;

/** Simulates a batch, event by event. 10^6 trials take some seconds. */
export function simulate(scenario: Scenario): Simulated {
  return new Simulation(scenario).run();
}

class Simulation {
  readonly #scenario: Scenario;
  readonly #lottery: Lottery;
  readonly #server: ServerModel;
  readonly #events = new FlatQueue<() => void>();
  /** Lanes of the scheduled trials that wait for a slot, oldest first. */
  readonly #ready: number[] = [];
  #nextReady = 0;
  /** Free slots; the worker of a slot is `slot % workers`. */
  readonly #freeSlots: number[];
  readonly #workers: WorkerState[];
  readonly #lanes: LaneState[];
  #now = 0;
  #completed = 0;
  #work = 0;
  #longest = 0;
  #reportsDone = 0;
  readonly #lost = { trials: 0, seconds: 0 };
  #peakRunning = 0;
  readonly #samples: Sample[] = [];
  #changesBefore = 0;

  constructor(scenario: Scenario) {
    const { workers, capacity, ahead, lanes, trials } = scenario;
    this.#scenario = scenario;
    this.#lottery = lottery(scenario.seed);
    this.#server = new ServerModel(scenario);
    const slots = workers * (capacity + ahead);
    this.#freeSlots = Array.from({ length: slots }, (_, index) => slots - 1 - index);
    this.#workers = Array.from({ length: workers }, idleWorker);
    this.#lanes = Array.from({ length: lanes }, (_, index) => ({
      left: Math.floor(trials / lanes) + (index < trials % lanes ? 1 : 0),
      open: 0,
      ofSlice: 0,
      hasTask: false,
    }));
  }

  run(): Simulated {
    const { trials, workers, capacity, mostRunning, trial } = this.#scenario;
    const slots = Math.min(workers * capacity, mostRunning);
    const sampleEvery = Math.max(1, (trials * trial.mean) / slots / sampleCount);
    this.#lanes.forEach((_, lane) => void this.#task(lane));
    this.#workers.forEach((_, worker) => void this.#failsLater(worker));
    this.#at(sampleEvery, () => this.#sample(sampleEvery));
    while (this.#completed < trials) {
      const at = this.#events.peekValue();
      const event = this.#events.pop();
      if (at === undefined || event === undefined) throw new Error('the simulated batch stands still');
      this.#now = at;
      event();
    }
    return {
      makespan: Math.max(this.#now, this.#reportsDone),
      ideal: Math.max(this.#work / slots, this.#longest),
      completed: this.#completed,
      changes: this.#server.changes,
      lost: this.#lost,
      peakRunning: this.#peakRunning,
      peakChangesPerSecond: Math.max(0, ...this.#samples.map((sample) => sample.changesPerSecond)),
      peakHeartbeatLoad: this.#server.peakHeartbeatLoad,
      samples: this.#samples,
    };
  }

  #at(time: number, event: () => void): void {
    this.#events.push(event, time);
  }

  /** A workflow task: what happened since the last one leads to the next scheduled trials. */
  #task(lane: number): void {
    const state = this.#lane(lane);
    if (state.hasTask) return;
    state.hasTask = true;
    const answered = this.#server.change(lane, this.#now) + this.#scenario.server.task;
    this.#at(answered, () => {
      const done = this.#server.change(lane, this.#now);
      this.#at(done, () => {
        state.hasTask = false;
        this.#schedule(lane);
      });
    });
  }

  #schedule(lane: number): void {
    const { window, slice } = this.#scenario;
    const state = this.#lane(lane);
    while (state.left > 0 && state.open < window) {
      if (state.ofSlice >= slice.trials) {
        if (state.open > 0 && !slice.overlaps) break;
        for (let change = 0; change < slice.changes; change++) this.#server.change(lane, this.#now);
        state.ofSlice = 0;
      }
      state.left--;
      state.open++;
      state.ofSlice++;
      this.#ready.push(lane);
    }
    this.#dispatch();
  }

  /** Gives scheduled trials to free slots. */
  #dispatch(): void {
    const { mostRunning, workers } = this.#scenario;
    while (this.#nextReady < this.#ready.length && this.#server.running < mostRunning) {
      const slot = this.#freeSlots.pop();
      if (slot === undefined) return;
      const worker = this.#workers[slot % workers];
      // A worker that is down gets its slots back when it is up again.
      if (!worker?.isUp) continue;
      this.#take(worker, { slot, lane: this.#takeReady(), began: undefined });
    }
  }

  /** A worker takes a trial, and sends a first heartbeat before anything else. */
  #take(worker: WorkerState, run: Run): void {
    const { poll } = this.#scenario.server;
    worker.held.add(run);
    this.#server.begins(run.lane);
    this.#peakRunning = Math.max(this.#peakRunning, this.#server.running);
    this.#at(this.#server.change(run.lane, this.#now) + poll, () => {
      this.#at(this.#server.change(run.lane, this.#now), () => {
        if (!worker.held.has(run)) return;
        worker.waiting.push(run);
        this.#begin(worker);
      });
    });
  }

  #begin(worker: WorkerState): void {
    const { trial, capacity } = this.#scenario;
    while (worker.busy < capacity) {
      const run = worker.waiting.shift();
      if (!run) return;
      worker.busy++;
      run.began = this.#now;
      const seconds = Math.min(trial.most, this.#lottery.lognormal(trial.mean, trial.spread));
      this.#at(this.#now + seconds, () => {
        if (!worker.held.has(run)) return;
        worker.busy--;
        this.#begin(worker);
        this.#end(worker, run, seconds);
      });
    }
  }

  #end(worker: WorkerState, run: Run, seconds: number): void {
    this.#at(this.#server.change(run.lane, this.#now), () => {
      if (!worker.held.delete(run)) return;
      this.#server.ends(run.lane);
      this.#freeSlots.push(run.slot);
      this.#work += seconds;
      this.#longest = Math.max(this.#longest, seconds);
      this.#completed++;
      this.#lane(run.lane).open--;
      this.#reportsDone = Math.max(this.#now, this.#reportsDone) + 1 / this.#scenario.reportsPerSecond;
      this.#task(run.lane);
      this.#dispatch();
    });
  }

  #failsLater(worker: number): void {
    this.#at(this.#now + this.#lottery.exponential(this.#scenario.failure.meanUp), () => this.#fail(worker));
  }

  #fail(index: number): void {
    const { failure, heartbeat, workers, capacity, ahead } = this.#scenario;
    const worker = this.#workers[index];
    if (!worker) return;
    for (const { lane, began = this.#now } of worker.held) {
      this.#server.ends(lane);
      this.#lost.trials++;
      this.#lost.seconds += this.#now - began;
      this.#at(this.#now + heartbeat.timeout, () => {
        this.#ready.push(lane);
        this.#dispatch();
      });
    }
    Object.assign(worker, { ...idleWorker(), isUp: false });
    this.#at(this.#now + failure.down, () => {
      worker.isUp = true;
      const own = new Set(this.#freeSlots.filter((slot) => slot % workers === index));
      for (let place = 0; place < capacity + ahead; place++) {
        const slot = index + place * workers;
        if (!own.has(slot)) this.#freeSlots.push(slot);
      }
      this.#failsLater(index);
      this.#dispatch();
    });
  }

  #sample(every: number): void {
    const { changes, heartbeatsPerSecond, running } = this.#server;
    const changesPerSecond = (changes - this.#changesBefore) / every + heartbeatsPerSecond;
    this.#changesBefore = changes;
    this.#samples.push({ at: this.#now, running, changesPerSecond });
    this.#at(this.#now + every, () => this.#sample(every));
  }

  /** The lane of the trial that waits the longest. */
  #takeReady(): number {
    const lane = this.#ready[this.#nextReady++] ?? 0;
    if (this.#nextReady > 100_000) {
      this.#ready.splice(0, this.#nextReady);
      this.#nextReady = 0;
    }
    return lane;
  }

  #lane(lane: number): LaneState {
    const state = this.#lanes[lane];
    if (!state) throw new RangeError(`there is no lane ${lane}`);
    return state;
  }
}

interface LaneState {
  /** Trials that were not scheduled yet. */
  left: number;
  /** Trials that were scheduled and are not completed. */
  open: number;
  /** Trials that its newest workflow has scheduled. */
  ofSlice: number;
  hasTask: boolean;
}

interface WorkerState {
  isUp: boolean;
  held: Set<Run>;
  /** Held trials that have not begun, oldest first. */
  waiting: Run[];
  /** Trials that run. */
  busy: number;
}

interface Run {
  slot: number;
  lane: number;
  began: number | undefined;
}

function idleWorker(): WorkerState {
  return { isUp: true, held: new Set(), waiting: [], busy: 0 };
}
