import {
  CancellationScope,
  condition,
  continueAsNew,
  defineQuery,
  defineSignal,
  isCancellation,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { PollTargets } from '../../agent/daemon/poll-targets.ts';
import { fleetMessages } from '../../bounds/fleet.ts';
import type { KnownTarget, Starting } from '../worker/orders.ts';
import {
  type FleetActivities,
  type LookAnswer,
  type PollInput,
  type PollState,
  pollQuery,
  pollSignals,
  type WaitingTrials,
} from './messages.ts';

/** Events after which the workflow continues as new. */
const longHistory = 4_000;
/**
 * Milliseconds. In the first looks, the service must have started a run at least this long ago: somebody may
 * still be starting the batch of a newer run.
 */
const settledMs = 10_000;

/**
 * Polls the service for queued local runs, on any worker, and starts their trials as workflows of their own.
 * It keeps what is polled and when. The service knows the rest, and the ids of the trials' workflows say what
 * was started.
 */
export async function offsitePoll(input: PollInput): Promise<PollState> {
  const poll = new Poll(input);
  setHandler(defineSignal(pollSignals.stop), () => poll.stop());
  setHandler(defineSignal<[Starting]>(pollSignals.starting), (start) => poll.begun(start));
  setHandler(defineSignal<[string]>(pollSignals.started), (token) => poll.started(token));
  setHandler(defineQuery<PollState>(pollQuery), () => poll.state());
  await poll.work();
  if (poll.isStopped) return poll.state();
  return await continueAsNew<typeof offsitePoll>({ ...input, before: poll.kept() });
}

class Poll {
  isStopped = false;
  starting: Starting[];
  readonly #input: PollInput;
  readonly #targets: PollTargets;
  readonly #scope = new CancellationScope();
  #started: number;
  #lookedAt: number | undefined;
  #open = 0;
  /** The trials that wait, by target. */
  readonly #waiting = new Map<string, WaitingTrials[]>();

  constructor(input: PollInput) {
    const { suites, cases, every: poll, before } = input;
    this.#input = input;
    this.#targets = new PollTargets(
      { suites, cases, poll },
      { clock: { monotonic: () => Date.now() }, random: () => Math.random() },
    );
    for (const { target, known } of before?.targets ?? []) this.#targets.add(target, known);
    this.#started = before?.started ?? 0;
    this.starting = before?.starting ?? [];
  }

  stop(): void {
    this.isStopped = true;
    this.#scope.cancel();
  }

  begun(start: Starting): void {
    this.starting.push(start);
  }

  started(token: string): void {
    this.starting = this.starting.filter((start) => start.token !== token);
  }

  async work(): Promise<void> {
    while (!this.isStopped && workflowInfo().historyLength < longHistory) {
      const due = this.#targets.due(this.#input.every.min, fleetMessages.count.targets);
      if (due.length > 0) await this.#look(due);
      else await condition(() => this.isStopped, this.#targets.next()?.inMs ?? this.#input.every.max);
    }
  }

  kept(): PollInput['before'] {
    return { targets: this.#targets.all, started: this.#started, starting: this.starting };
  }

  state(): PollState {
    const { service, suites, cases, since, trials } = this.#input;
    return {
      service,
      suites,
      cases,
      since,
      pool: trials.pool,
      open: this.#open,
      targets: this.#targets.size,
      started: this.#started,
      lookedAt: this.#lookedAt,
      waiting: summed([...this.#waiting.values()].flat()),
      failures: this.#targets.failures.slice(0, fleetMessages.count.failures),
    };
  }

  async #look(due: KnownTarget[]): Promise<void> {
    const { trials, since, before } = this.#input;
    const now = Date.now();
    this.starting = this.starting.filter(({ until }) => until > now);
    // A start that began before this poll did has not announced itself.
    const isYoung = before === undefined && now < since + settledMs;
    const { offsiteLook } = proxyActivities<FleetActivities>({
      heartbeatTimeout: trials.heartbeatMs,
      startToCloseTimeout: fleetMessages.time.look,
      cancellationType: 'WAIT_CANCELLATION_COMPLETED',
      retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
    });
    const order = {
      targets: due,
      trials,
      starting: this.starting,
      before: isYoung ? now - settledMs : Number.MAX_SAFE_INTEGER,
    };
    try {
      this.#note(due, await this.#scope.run(() => offsiteLook(order)));
    } catch (error) {
      if (!isCancellation(error)) throw error;
    }
  }

  #note(due: KnownTarget[], { targets, open }: LookAnswer): void {
    this.#lookedAt = Date.now();
    this.#open = open;
    for (const [index, { target }] of due.entries()) {
      const answer = targets[index] ?? { kind: 'failed', failure: 'the look ended before it' };
      if (answer.kind === 'failed') {
        this.#targets.failed(target, answer.failure);
        continue;
      }
      const before = this.#targets.size;
      for (const id of answer.cases ?? []) this.#targets.add({ kind: 'case', id, suite: target.id });
      this.#started += answer.started;
      const name = JSON.stringify(target);
      if (answer.waiting.length > 0) this.#waiting.set(name, answer.waiting);
      else this.#waiting.delete(name);
      const isNew = answer.started > 0 || this.#targets.size > before;
      this.#targets.polled(target, isNew ? 'something' : 'nothing');
    }
  }
}

/** Trials that wait for the same reason, together. */
function summed(all: readonly WaitingTrials[]): WaitingTrials[] {
  const trials = new Map<string, number>();
  for (const one of all) trials.set(one.reason, (trials.get(one.reason) ?? 0) + one.trials);
  return [...trials]
    .map(([reason, count]) => ({ reason, trials: count }))
    .slice(0, fleetMessages.count.failures);
}
