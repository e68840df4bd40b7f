import type { Logger } from 'pino';
import type { WorkEvent } from '../../agent/worker/worker-parts.ts';
import type { Clock } from '../../base/clock.ts';
import { Activity, type ActivityState, activityOf } from '../output/activity.ts';
import { heartbeat } from '../output/progress.ts';

export interface WorkLog extends Disposable {
  observe(event: WorkEvent): void;
  /** Notes that the log has another line. */
  logged(): void;
}

export interface WorkLogParts {
  clock: Clock;
  /** How many trials wait to run. */
  queued(): number;
}

/** Logs what is going on when the log has been silent for a while and something is in progress. */
export function workLog(log: Logger, { clock, queued }: WorkLogParts): WorkLog {
  const activity = new Activity(() => clock.monotonic());
  const beating = heartbeat(clock, () => {
    // What is down is found to work again only by trials. Without any, there is nothing to say about it.
    const isAtWork = activity.isWorking || (activity.isBusy && queued() > 0);
    if (isAtWork) log.info(fieldsOf(activity.state()), 'at work');
  });
  return {
    observe(event) {
      const change = activityOf(event);
      if (change) activity.update(change);
    },
    logged: () => beating.printed(),
    [Symbol.dispose]: () => beating[Symbol.dispose](),
  };
}

/** How many builds a line of the log names. */
const namedBuilds = 10;

function fieldsOf({ verdicts, running, builds, outages }: ActivityState) {
  const [longest] = running;
  const phases = Map.groupBy(running, ({ phase }) => phase);
  return {
    finished: verdicts,
    running: Object.fromEntries([...phases].map(([phase, trials]) => [phase, trials.length])),
    longest: longest && { case: longest.trial.case, trial: longest.trial.which, ms: round(longest.forMs) },
    builds: builds.length,
    building: builds
      .slice(0, namedBuilds)
      .map(({ what, state, forMs }) => ({ what, state, ms: round(forMs) })),
    down: outages.map(({ of, reason, forMs }) => ({ of, reason, ms: round(forMs) })),
  };
}

const round = Math.round;
