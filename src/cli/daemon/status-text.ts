import { stripVTControlCharacters } from 'node:util';
import type { DaemonStatus } from '../../agent/daemon/status.ts';
import { duration, plural } from '../output/quantities.ts';

/** A daemon's status for people. */
export function statusText(status: DaemonStatus): string {
  const { finished, outbox, health, running } = status;
  const memory = Math.round(status.residentBytes / 1024 ** 2);
  const oldest = outbox.oldestMs === undefined ? '' : `, the oldest for ${duration(outbox.oldestMs)}`;
  const ended = finished.passed + finished.failed + finished.void;
  const lines = [
    `${status.mode}, process ${status.pid}, up ${duration(status.upMs)}, ${memory} MiB`,
    `service   ${status.service}`,
    `engine    ${status.engine}`,
    `results   ${status.dataFolder}`,
    `health    ${health.ok ? 'all is well' : health.troubles.join('; ')}`,
    `trials    ${status.queued} queued, ${running.length} of ${status.concurrency} running, ${ended} finished since the start`,
    `verdicts  ${finished.passed} passed, ${finished.failed} failed, ${finished.void} void`,
    `reports   ${outbox.queued} not delivered yet${oldest}${outbox.parked > 0 ? `, ${outbox.parked} refused: offsite outbox` : ''}`,
    ...(status.blocked === undefined ? [] : [`blocked   ${status.blocked}`]),
    ...section(plural(running.length, 'running trial'), running, (trial) => {
      return `${trial.case} · ${trial.run} #${trial.ordinal}  ${trial.phase}  ${duration(trial.forMs)}`;
    }),
    ...section(plural(status.waiting.length, 'waiting run'), status.waiting, reasonOf),
    ...section(plural(status.parked.length, 'parked run'), status.parked, reasonOf),
    ...section('cannot look for runs', status.polls, ({ place, trouble }) => `${place}: ${trouble}`),
  ];
  // Names and reasons come from the service.
  return stripVTControlCharacters(lines.join('\n'));
}

function section<Item>(title: string, items: readonly Item[], lineOf: (item: Item) => string): string[] {
  return items.length === 0 ? [] : ['', `${title}:`, ...items.map((item) => `  ${lineOf(item)}`)];
}

function reasonOf({ case: caseId, run, reason }: { case: string; run: string; reason: string }): string {
  return `${caseId} · ${run}  ${reason}`;
}
