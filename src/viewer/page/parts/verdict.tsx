import type { AuditStanding } from '../../../record/audit.ts';
import type { Tally } from '../../model/grid.ts';
import type { TrialRow } from '../../model/shapes.ts';
import { when } from './quantities.ts';

export type Standing = 'passed' | 'failed' | 'void' | 'running' | 'queued';

export function standingOf({ verdict, state }: Pick<TrialRow, 'verdict' | 'state'>): Standing {
  return verdict ?? (state === 'running' ? 'running' : 'queued');
}

const signs: Record<Standing, string> = { passed: '✓', failed: '✗', void: '○', running: '◔', queued: '·' };

export function signOf(standing: Standing): string {
  return signs[standing];
}

/** A verdict as a sign with its word. */
export function Verdict({ standing }: { standing: Standing }) {
  return (
    <span class={`verdict ${standing}`}>
      <span class="sign" aria-hidden="true">
        {signs[standing]}
      </span>
      {standing}
    </span>
  );
}

/** How far a result was audited, with the date. Nothing if it was not. */
export function AuditChip({ audit }: Pick<TrialRow, 'audit'>) {
  if (!audit) return null;
  const { standing, at } = audit;
  return (
    <span class={`tag audit ${standing}`} title={`audited ${when(at)}`}>
      {standingText(standing)}
    </span>
  );
}

export function standingText(standing: AuditStanding): string {
  return standing === 'none' ? 'not even intact' : standing;
}

/** Numbers of verdicts as words. */
export function tallyText({ passed, failed, void: voided, unfinished }: Tally): string {
  const parts = [
    `${passed} passed`,
    `${failed} failed`,
    ...(voided > 0 ? [`${voided} void`] : []),
    ...(unfinished > 0 ? [`${unfinished} unfinished`] : []),
  ];
  return parts.join(', ');
}

/** Numbers of verdicts with their signs. */
export function TallySigns({ tally }: { tally: Tally }) {
  return (
    <span class="tally-signs" role="img" aria-label={tallyText(tally)} title={tallyText(tally)}>
      {partsOf(tally).map(
        ([name, count]) =>
          count > 0 && (
            <span key={name} class={`verdict ${name}`}>
              {signs[name]} {count}
            </span>
          ),
      )}
    </span>
  );
}

/** Verdicts as a bar of four parts, beside their numbers. */
export function TallyBar({ tally }: { tally: Tally }) {
  return (
    <span class="tally-bar" aria-hidden="true">
      {partsOf(tally).map(
        ([name, count]) => count > 0 && <span key={name} class={name} style={{ flexGrow: `${count}` }} />,
      )}
    </span>
  );
}

function partsOf({ passed, failed, void: voided, unfinished }: Tally) {
  return [
    ['passed', passed],
    ['failed', failed],
    ['void', voided],
    ['queued', unfinished],
  ] as const;
}
