import type { Clock } from '../base/clock.ts';
import type { ArchiveCopy } from '../engine/archive/read.ts';
import type { Container } from '../engine/container.ts';
import type { BudgetAccount, Gateway } from '../gateway/gateway.ts';
import type { Cassette } from '../gateway/replay/cassette.ts';
import type { Runner } from '../harness/runner.ts';
import type { BlobStore } from '../ledger/blobs.ts';
import type { Workspaces } from '../ledger/workspaces.ts';
import type { PhaseName } from '../record/cause.ts';
import type { LeftState } from '../record/files.ts';
import type { PhaseTiming, TrialRecord } from '../record/trial-record.ts';
import type { Budget } from '../suite/model-config.ts';
import type { PlannedReplay } from '../suite/plan.ts';
import type { SandboxedAsk } from '../validate/sandboxed-records.ts';
import type { Carry } from '../validate/workspace-copy.ts';
import type { Sandboxes } from './prepare/sandboxes.ts';
import type { AgentUsers, StartedSandbox } from './prepare/started-sandbox.ts';
import type { TrialServices } from './prepare/trial-services.ts';
import type { TrialModels } from './run/models.ts';
import { type Solve, type TrialSpec, testsSpec } from './spec.ts';

/** The record of a trial to which phases still add, and values that only later phases need. */
export interface OpenRecord extends Partial<TrialRecord> {
  /** What to copy from the workspace to a fresh sandbox. */
  carry?: Carry;
  /**
   * The workspace as it was collected. Only if nothing that grades changes the sandbox, and the workspace is
   * small.
   */
  packed?: ArchiveCopy | undefined;
  /** Protected files that differ from what prepare made. */
  protectedChanged?: readonly string[];
  /** Whether something changed outside the workspace that verify's result depends on. */
  verifyTampered?: boolean;
  /** The validator's question to a model that got no answer, if that is why there is no verdict. */
  failedAsk?: SandboxedAsk;
}

/** The sandbox in which the phases of a trial work, with what they need around it. */
export interface TrialSandbox
  extends Pick<
    StartedSandbox,
    'container' | 'imageId' | 'prepared' | 'kit' | 'services' | 'startUp' | 'port' | 'isCommittable'
  > {
  users: AgentUsers;
  parts: TrialParts;
  /** The whole trial. A phase gets the plan of the step that it works on. */
  whole: TrialSpec;
  /** The step, from 0. A trial without steps is one step. */
  step: number;
  isLastStep: boolean;
  /** Brings an untouched sandbox to where this step's harness began, without the work of earlier steps. */
  reach(container: Container): Promise<void>;
  /**
   * The same, with the author's solution of each step until the end of this one, which `run` runs. Undefined
   * if one has no solution.
   */
  solve: Solve | undefined;
  /** Other sandboxes, in which no harness ran. */
  graders: GradingSandboxes;
  /** Undefined if the trial has no model, not even a judge. */
  models: TrialModels | undefined;
  signal: AbortSignal;
  /** Keeps what the harness left, to grade it again. Undefined for a control, and for what was kept. */
  keeping?: Keeping | undefined;
  /** What the trial itself had found, if this is a later grading. */
  restored?: Restored | undefined;
}

/** Where trials keep what they leave. */
export interface KeepParts {
  store: Pick<Workspaces, 'store' | 'search' | 'folder'>;
  /** Bytes that all archives may take together. */
  budget: number;
}

/** Keeps what one trial left, at the right moment between the phases that need its sandbox. */
export interface Keeping {
  /** Begins, after collect. */
  begin(plan: TrialSpec, sandbox: TrialSandbox, found: OpenRecord): void;
  /** Resolves when the sandbox may be changed. Never rejects. Undefined if nothing is being kept. */
  readonly done: Promise<unknown> | undefined;
  /** What was kept; undefined if there was nothing to keep. */
  result(): Promise<{ left?: LeftState }>;
}

/** What a restored sandbox no longer shows of a trial whose left state is graded again. */
export interface Restored {
  /** Workspace-relative paths, for workspaces that are too large to compare. */
  filesChanged: readonly string[];
  /** Paths outside the workspace that had changed. */
  systemPaths: readonly string[];
}

export interface Phase {
  name: PhaseName;
  /**
   * What the phase finds if it has nothing to do; then `run` is not called. Undefined if it has something to
   * do.
   */
  idle?(plan: TrialSpec): OpenRecord | undefined;
  /**
   * Returns what the phase found, which is added to the record. A verdict ends the trial. Throws a
   * `TrialFailure` if it is known whose fault a failure is, and an `OffsiteError` if experiments shall show
   * that.
   *
   * @param record what earlier phases found
   */
  run(plan: TrialSpec, sandbox: TrialSandbox, record: OpenRecord): Promise<OpenRecord>;
}

interface GradingContext {
  spec: TrialSpec;
  parts: Pick<TrialParts, 'sandboxes'>;
  signal: AbortSignal;
  /** The services that its sandboxes reach. Undefined: each sandbox gets new ones, if the case has some. */
  services: TrialServices | undefined;
}

/**
 * A sandbox of the trial's image in which no harness ran. It starts on first use or with `start`.
 * Disposing releases it.
 */
export class FreshSandbox implements Disposable {
  readonly #context: GradingContext;
  #started: Promise<StartedSandbox> | undefined;

  constructor(context: GradingContext) {
    this.#context = context;
  }

  /**
   * Starts the sandbox before it is needed. An error is thrown to the code that asks for the sandbox later.
   */
  start(): void {
    this.sandbox().catch(() => undefined);
  }

  sandbox(): Promise<StartedSandbox> {
    const { spec, parts, signal, services } = this.#context;
    this.#started ??= parts.sandboxes.takeForGrading(spec, signal, services);
    return this.#started;
  }

  async container(): Promise<Container> {
    return (await this.sandbox()).container;
  }

  [Symbol.dispose](): void {
    if (this.#started) this.#context.parts.sandboxes.giveBack(this.#started);
  }
}

/**
 * The fresh sandboxes that grade one trial. Verify and the validator never share one: what the work does to
 * verify's sandbox must not reach the validator's.
 */
export class GradingSandboxes implements Disposable {
  readonly verify: FreshSandbox;
  readonly validator: FreshSandbox;
  /** For tests that do not run in the agent's own sandbox. */
  readonly tests: FreshSandbox;
  readonly #spec: TrialSpec;

  constructor(context: GradingContext) {
    this.#spec = context.spec;
    this.verify = new FreshSandbox(context);
    this.validator = new FreshSandbox(context);
    // With services that no agent has used.
    this.tests = new FreshSandbox({ ...context, spec: testsSpec(context.spec), services: undefined });
  }

  /** Starts the sandboxes that the case is graded in. */
  start(): void {
    const { verify, verifyPlace, validator, tests } = this.#spec;
    if (verify !== undefined && verifyPlace.in === 'fresh') this.verify.start();
    if (validator) this.validator.start();
    if (tests?.fresh) this.tests.start();
  }

  [Symbol.dispose](): void {
    this.verify[Symbol.dispose]();
    this.validator[Symbol.dispose]();
    this.tests[Symbol.dispose]();
  }
}

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

export type RunPhase = (phase: Phase, ...args: Parameters<Phase['run']>) => ReturnType<Phase['run']>;

/** Runs the phases of a trial, announces them, and keeps how long each one took. */
export class PhaseTimer {
  readonly #timings: PhaseTiming[] = [];
  readonly #startedAt: number;
  readonly #clock: Clock;
  readonly #onPhase: (phase: PhaseName) => void;
  #current: PhaseName = 'sandbox';

  /** @param onPhase called when a phase begins */
  constructor(clock: Clock, onPhase: (phase: PhaseName) => void) {
    this.#clock = clock;
    this.#startedAt = clock.now();
    this.#onPhase = onPhase;
  }

  /** The phase that began last. */
  get current(): PhaseName {
    return this.#current;
  }

  /** When the trial ran, and its phases. */
  times(): Pick<TrialRecord, 'startedAt' | 'finishedAt' | 'phases'> {
    return { startedAt: this.#startedAt, finishedAt: this.#clock.now(), phases: this.#timings };
  }

  /** @param step the step of the trial that the phases are part of, if the trial has several */
  phasesOf(step?: string): RunPhase {
    return (phase, ...args) => this.run(phase.name, () => phase.run(...args), step);
  }

  async run<Result>(name: PhaseName, work: () => Promise<Result>, step?: string): Promise<Result> {
    this.#current = name;
    this.#onPhase(name);
    const startedAt = this.#clock.now();
    try {
      return await work();
    } finally {
      const durationMs = this.#clock.now() - startedAt;
      this.#timings.push({ name, ...(step !== undefined && { step }), startedAt, durationMs });
    }
  }
}
