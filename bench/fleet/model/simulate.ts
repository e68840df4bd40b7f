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
  /** Trials that ended with their worker, and the seconds of work that were lost with them. */
  lost: { trials: number; seconds: number };
  peakRunning: number;
  /** With heartbeats. */
  peakChangesPerSecond: number;
  /** Of one workflow; from 1 its heartbeats cannot be kept up. */
  peakHeartbeatLoad: number;
  samples: Sample[];
}

/** Samples of a simulation, about. */
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
  /** Workflows of the scheduled trials that wait for a slot, oldest first. */
  readonly #ready: number[] = [];
  #nextReady = 0;
  /** Free slots; the worker of a slot is `slot % workers`. */
  readonly #freeSlots: number[];
  readonly #workers: WorkerState[];
  readonly #workflows: WorkflowState[];
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
    const { workers, capacity, workflows, trials } = scenario;
    this.#scenario = scenario;
    this.#lottery = lottery(scenario.seed);
    this.#server = new ServerModel(scenario);
    this.#freeSlots = Array.from(
      { length: workers * capacity },
      (_, index) => workers * capacity - 1 - index,
    );
    this.#workers = Array.from({ length: workers }, () => ({ isUp: true, running: new Set<Run>() }));
    this.#workflows = Array.from({ length: workflows }, (_, index) => ({
      left: Math.floor(trials / workflows) + (index < trials % workflows ? 1 : 0),
      open: 0,
      ofGeneration: 0,
      hasTask: false,
    }));
  }

  run(): Simulated {
    const { trials, workers, capacity, mostRunning, trial } = this.#scenario;
    const slots = Math.min(workers * capacity, mostRunning);
    const sampleEvery = Math.max(1, (trials * trial.mean) / slots / sampleCount);
    this.#workflows.forEach((_, workflow) => void this.#task(workflow));
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
  #task(workflow: number): void {
    const state = this.#workflow(workflow);
    if (state.hasTask) return;
    state.hasTask = true;
    const answered = this.#server.change(workflow, this.#now) + this.#scenario.server.task;
    this.#at(answered, () => {
      const done = this.#server.change(workflow, this.#now);
      this.#at(done, () => {
        state.hasTask = false;
        this.#schedule(workflow);
      });
    });
  }

  #schedule(workflow: number): void {
    const { window, generation } = this.#scenario;
    const state = this.#workflow(workflow);
    if (state.ofGeneration >= generation && state.open === 0) state.ofGeneration = 0;
    while (state.left > 0 && state.open < window && state.ofGeneration < generation) {
      state.left--;
      state.open++;
      state.ofGeneration++;
      this.#ready.push(workflow);
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
      this.#start(worker, slot, this.#takeReady());
    }
  }

  #start(worker: WorkerState, slot: number, workflow: number): void {
    const { trial } = this.#scenario;
    const seconds = Math.min(trial.most, this.#lottery.lognormal(trial.mean, trial.spread));
    const run: Run = { slot, workflow, began: this.#server.change(workflow, this.#now) };
    worker.running.add(run);
    this.#server.begins(workflow);
    this.#peakRunning = Math.max(this.#peakRunning, this.#server.running);
    this.#at(run.began + seconds, () => {
      if (!worker.running.delete(run)) return;
      this.#end(run, seconds);
    });
  }

  #end({ slot, workflow }: Run, seconds: number): void {
    this.#server.ends(workflow);
    this.#freeSlots.push(slot);
    this.#work += seconds;
    this.#longest = Math.max(this.#longest, seconds);
    this.#at(this.#server.change(workflow, this.#now), () => {
      this.#completed++;
      this.#workflow(workflow).open--;
      this.#reportsDone = Math.max(this.#now, this.#reportsDone) + 1 / this.#scenario.reportsPerSecond;
      this.#task(workflow);
    });
    this.#dispatch();
  }

  #failsLater(worker: number): void {
    this.#at(this.#now + this.#lottery.exponential(this.#scenario.failure.meanUp), () => this.#fail(worker));
  }

  #fail(index: number): void {
    const { failure, heartbeat, workers, capacity } = this.#scenario;
    const worker = this.#workers[index];
    if (!worker) return;
    worker.isUp = false;
    for (const { workflow, began } of worker.running) {
      this.#server.ends(workflow);
      this.#lost.trials++;
      this.#lost.seconds += Math.max(0, this.#now - began);
      this.#at(this.#now + heartbeat.timeout, () => {
        this.#ready.push(workflow);
        this.#dispatch();
      });
    }
    worker.running.clear();
    this.#at(this.#now + failure.down, () => {
      worker.isUp = true;
      const own = new Set(this.#freeSlots.filter((slot) => slot % workers === index));
      for (let place = 0; place < capacity; place++) {
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

  #takeReady(): number {
    const workflow = this.#ready[this.#nextReady++] ?? 0;
    if (this.#nextReady > 100_000) {
      this.#ready.splice(0, this.#nextReady);
      this.#nextReady = 0;
    }
    return workflow;
  }

  #workflow(workflow: number): WorkflowState {
    const state = this.#workflows[workflow];
    if (!state) throw new RangeError(`there is no workflow ${workflow}`);
    return state;
  }
}

interface WorkflowState {
  /** Trials that were not scheduled yet. */
  left: number;
  /** Trials that were scheduled and are not completed. */
  open: number;
  /** Trials that were scheduled since it continued as new. */
  ofGeneration: number;
  hasTask: boolean;
}

interface WorkerState {
  isUp: boolean;
  running: Set<Run>;
}

interface Run {
  slot: number;
  workflow: number;
  /** When the worker had it. */
  began: number;
}
