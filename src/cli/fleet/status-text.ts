import type { HeldTrial } from '../../fleet/batch-handle.ts';
import { memoryText } from '../../fleet/placement.ts';
import type { BatchStatus, FleetStatus, WorkerStatus } from '../../fleet/status.ts';
import type { WaitingTrials } from '../../fleet/workflow/messages.ts';
import { ours, type Printable, stack, text } from '../../text/printable.ts';
import { elapsed, firstNames, plural } from '../../text/quantities.ts';

/** Running trials and names that are listed one by one. `--json` has all. */
const listed = { trials: 20, names: 4 };

/** @param now epoch milliseconds */
export function statusText({ workers, batches, poll, found }: FleetStatus, now: number): Printable {
  return stack([
    text`${ours(headed(workers.length, 'worker', 'workers'))}`,
    ...workers.flatMap(workerLines),
    text`${ours(headed(batches.length, 'batch', 'batches'))}`,
    ...batches.flatMap(batchLines),
    ...pollLines(poll, now),
    found.open > 0 &&
      text`  ${plural(found.open, 'trial')} of queued runs started and not ended, ${found.running.length} held by workers`,
    ...(found.open > 0 ? runningLines(found.running) : []),
  ]);
}

function headed(count: number, one: string, several: string): string {
  return `${count} ${count === 1 ? one : several}${count > 0 ? ':' : ''}`;
}

function workerLines({ name, silentMs, profile, isThere, holds }: WorkerStatus): Printable[] {
  const seen = ours(elapsed(silentMs));
  const first = (state: Printable) => text`  ${shortName(name)}  ${state}, seen ${seen} ago`;
  if (!profile) return [first(text`offers nothing that this Offsite can read`)];
  const { concurrency, pools, engine, trialMemory, labels, models, harnesses, version } = profile;
  const trials = text`holds ${holds}, runs ${concurrency} at a time`;
  const state = profile.ended ? text`ends, ${trials}` : isThere ? trials : text`silent, ${trials}`;
  return [
    first(state),
    text`    Offsite ${version}, engine ${engine.version}, ${engine.arch}, ${memoryText(trialMemory)} for a trial`,
    text`    pools ${names(pools)}; labels ${names(labels)}`,
    text`    models ${names(models)}; harnesses ${names(harnesses)}`,
  ];
}

function names(all: readonly string[]): Printable {
  return all.length === 0 ? ours('none') : text`${firstNames(all, listed.names)}`;
}

/** `machine/agent-1f3c…/2` as `machine/1f3c`: enough to distinguish the workers of a machine. */
function shortName(worker: string): string {
  const [, machine, agent] = worker.match(/^(.*)\/agent-([0-9a-f]{8})[0-9a-f-]*\/\d+$/) ?? [];
  return machine === undefined ? worker : `${machine}/${agent}`;
}

function batchLines({ id, suite, held, progress, running, waiting, pool }: BatchStatus): Printable[] {
  const { passed = 0, failed = 0, void: without = 0, elsewhere = 0, trials = 0, isPaused } = progress ?? {};
  const done = `${passed + failed + without + elsewhere} of ${trials}`;
  const state = progress ? (isPaused ? `${done}, paused` : done) : 'no worker answers';
  return [
    text`  ${id}  ${suite}  ${state}, ${held} held by workers`,
    ...(pool === 'default' ? [] : [text`    in the pool ${pool}`]),
    ...waitingLines(waiting),
    ...runningLines(running),
  ];
}

function waitingLines(waiting: readonly WaitingTrials[]): Printable[] {
  return waiting.map(({ trials, reason }) => text`    ${waits(trials)}: ${reason}`);
}

/** `3 trials wait` */
export function waits(trials: number): Printable {
  return ours(trials === 1 ? '1 trial waits' : `${trials} trials wait`);
}

function runningLines(running: readonly HeldTrial[]): Printable[] {
  const shown = running.slice(0, listed.trials);
  const more = running.length - shown.length;
  return [
    ...shown.map(({ trial, phase = '', worker, attempt }) => {
      const again = ours(attempt > 1 ? `, attempt ${attempt}` : '');
      return text`    ${trial}  ${phase} on ${shortName(worker)}${again}`;
    }),
    ...(more > 0 ? [text`    and ${more} more: --json lists them`] : []),
  ];
}

function pollLines(poll: FleetStatus['poll'], now: number): Printable[] {
  if (poll.kind === 'none') return [text`no poll for queued runs`];
  if (poll.kind === 'silent') return [text`polls for queued runs, but no worker answers`];
  const { suites, cases, targets, lookedAt, started, waiting, failures, pool } = poll.state;
  const where = [...suites.map((id) => `suite ${id}`), ...cases.map((id) => `case ${id}`)];
  const last =
    lookedAt === undefined ? ours('not looked yet') : text`looked ${ours(elapsed(now - lookedAt))} ago`;
  const isOther = pool === 'default' ? text`` : text`, for the pool ${pool}`;
  return [
    text`polls for queued runs: ${names(where)}${isOther}`,
    text`  ${plural(targets, 'target')}, ${last}, ${plural(started, 'trial')} started`,
    ...(poll.lastFailure === undefined ? [] : [text`  its last look failed: ${poll.lastFailure}`]),
    ...failures.map(({ target, failure }) => text`  ${target}: ${failure}`),
    ...waitingLines(waiting),
  ];
}
