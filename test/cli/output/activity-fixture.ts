import { Activity, type NamedTrial } from '../../../src/cli/output/activity.ts';

/** An activity whose time passes by hand. */
export function activityAt(start = 1_000) {
  let now = start;
  const activity = new Activity(() => now);
  return {
    activity,
    pass(ms: number) {
      now += ms;
    },
    runs(name: string, phase: 'sandbox' | 'harness' | 'verify' = 'harness') {
      activity.update({ kind: 'phase', trial: trial(name), phase });
    },
    ends(name: string, verdict: 'passed' | 'failed' | 'void', ms: number) {
      activity.update({ kind: 'finished', trial: trial(name), verdict, ms });
    },
    builds(what: string, kind: 'queued' | 'running' | 'other-agent' | 'built' | 'stopped') {
      activity.update({ kind: 'build', build: { id: what, what, state: { kind } } });
    },
  };
}

export function trial(name: string, which = 'worker #0'): NamedTrial {
  return { key: `${name} ${which}`, case: name, which };
}
