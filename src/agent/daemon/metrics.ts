import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { TrialRecord } from '../../record/trial-record.ts';
import { type DaemonStatus, isReady } from './status.ts';

/** Seconds, from a trial that does nothing to one that works for hours. */
const durationBuckets = [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000];

/** Metrics whose value is read when somebody asks for the metrics. */
const present: [name: string, help: string, value: (status: DaemonStatus) => number][] = [
  ['offsite_trials_queued', 'Trials in the queue.', ({ queued }) => queued],
  ['offsite_trials_running', 'Trials that run.', ({ running }) => running.length],
  [
    'offsite_runs_waiting',
    'Runs that wait for the configuration or the machine.',
    ({ waiting }) => waiting.length,
  ],
  ['offsite_runs_parked', 'Runs that can never run here.', ({ parked }) => parked.length],
  ['offsite_concurrency', 'Trials at a time.', ({ concurrency }) => concurrency],
  ['offsite_outbox_reports', 'Results that wait to be sent.', ({ outbox }) => outbox.queued],
  [
    'offsite_outbox_sent',
    'Results that were sent, and were not seen at the service yet.',
    ({ outbox }) => outbox.sent,
  ],
  [
    'offsite_queue_refused',
    'Files of the queue folder that were refused, at most 20.',
    ({ refused }) => refused.length,
  ],
  ['offsite_outbox_parked', 'Results that the service refused for good.', ({ outbox }) => outbox.parked],
  [
    'offsite_outbox_oldest_seconds',
    'Age of the oldest result that waits to be sent or to be seen at the service; 0 if there is none.',
    ({ outbox }) => (outbox.oldestMs ?? 0) / 1000,
  ],
  ['offsite_healthy', '1 if engine, service and every loop work, else 0.', ({ health }) => Number(health.ok)],
  [
    'offsite_ready',
    '1 if trials may start, as `/readyz`; 0 while paused or draining, or with a full disk.',
    (status) => Number(isReady(status)),
  ],
  ['offsite_resident_bytes', "The daemon's own memory.", ({ residentBytes }) => residentBytes],
];

/** What the daemon has counted since its start, in its own registry. */
export class Metrics {
  readonly #registry = new Registry();
  readonly #registers = [this.#registry];
  readonly errors = new Counter({
    name: 'offsite_errors_total',
    help: 'Failures of what the daemon depends on: engine, service, disk, a loop, or the daemon itself.',
    labelNames: ['of'],
    registers: this.#registers,
  });
  readonly retried = new Counter({
    name: 'offsite_attempts_repeated_total',
    help: 'Attempts that do not count, after which the trial started again.',
    registers: this.#registers,
  });
  readonly reports = new Counter({
    name: 'offsite_reports_total',
    help: 'Reports by outcome: sent, delivered (seen at the service), queued again, parked for a person, or superseded.',
    labelNames: ['outcome'],
    registers: this.#registers,
  });
  readonly #finished = new Counter({
    name: 'offsite_trials_finished_total',
    help: 'Finished trials, by verdict and by what made them void.',
    labelNames: ['verdict', 'cause'],
    registers: this.#registers,
  });
  readonly #finishedOn = new Counter({
    name: 'offsite_engine_trials_finished_total',
    help: 'Finished trials by engine and verdict. Only if there are several engines.',
    labelNames: ['engine', 'verdict'],
    registers: this.#registers,
  });
  readonly #phases = new Histogram({
    name: 'offsite_phase_seconds',
    help: 'How long the phases of trials took.',
    labelNames: ['phase'],
    buckets: durationBuckets,
    registers: this.#registers,
  });
  readonly #tokens = new Counter({
    name: 'offsite_model_tokens_total',
    help: 'Tokens that finished trials used, as far as their models report them.',
    labelNames: ['model', 'role', 'kind'],
    registers: this.#registers,
  });
  readonly #cost = new Counter({
    name: 'offsite_model_cost_usd_total',
    help: 'Cost of these tokens by the configured prices.',
    labelNames: ['model', 'role'],
    registers: this.#registers,
  });
  readonly #present = present.map(([name, help, value]) => {
    return { gauge: new Gauge({ name, help, registers: this.#registers }), value };
  });
  readonly #limits = new Gauge({
    name: 'offsite_model_limit',
    help: 'Requests that a model with maxParallel: auto may have in flight.',
    labelNames: ['model'],
    registers: this.#registers,
  });
  readonly #requests = new Gauge({
    name: 'offsite_model_requests',
    help: 'Requests to such a model, in flight or waiting.',
    labelNames: ['model'],
    registers: this.#registers,
  });
  readonly #onEngine = new Gauge({
    name: 'offsite_engine_trials_running',
    help: 'Trials that run on an engine. Only if there are several.',
    labelNames: ['engine'],
    registers: this.#registers,
  });
  readonly #engineWorks = new Gauge({
    name: 'offsite_engine_works',
    help: '1 if the engine answered when it was last needed, else 0. Only if there are several.',
    labelNames: ['engine'],
    registers: this.#registers,
  });
  /** Finished trials by verdict. */
  readonly counts = { passed: 0, failed: 0, void: 0 };

  /** Counts a finished trial. */
  finished({ verdict, cause, phases, models, engine }: TrialRecord): void {
    this.counts[verdict]++;
    if (engine !== undefined) this.#finishedOn.inc({ engine, verdict });
    this.#finished.inc({ verdict, cause: cause?.kind ?? 'none' });
    for (const { name, durationMs } of phases) {
      // A clock that was set back during the phase gives no usable duration.
      if (durationMs >= 0) this.#phases.observe({ phase: name }, durationMs / 1000);
    }
    for (const { model, role, usage } of models?.usage ?? []) {
      const { inputTokens = 0, outputTokens = 0, costUsd } = usage;
      this.#tokens.inc({ model, role, kind: 'input' }, inputTokens);
      this.#tokens.inc({ model, role, kind: 'output' }, outputTokens);
      if (costUsd !== undefined) this.#cost.inc({ model, role }, costUsd);
    }
  }

  /** All metrics: their names, labels and what they measure. */
  get described(): { name: string; help: string; type: string; labels: readonly string[] }[] {
    return this.#registry
      .getMetricsAsArray()
      .map(
        (metric) => metric as unknown as { name: string; help: string; type: string; labelNames: string[] },
      )
      .map(({ name, help, type, labelNames }) => ({ name, help, type, labels: labelNames }));
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All metrics in Prometheus' text format. */
  async text(status: DaemonStatus): Promise<string> {
    for (const { gauge, value } of this.#present) gauge.set(value(status));
    for (const { model, limit, inFlight } of status.limits) {
      this.#limits.set({ model }, limit);
      this.#requests.set({ model }, inFlight);
    }
    for (const { name, running, works } of status.engines ?? []) {
      this.#onEngine.set({ engine: name }, running);
      this.#engineWorks.set({ engine: name }, Number(works));
    }
    return this.#registry.metrics();
  }
}
