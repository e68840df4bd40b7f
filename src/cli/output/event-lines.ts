import { stripVTControlCharacters, styleText } from 'node:util';
import type { BatchEvent, BatchTrial } from '../../agent/batch.ts';
import type { TrialResult } from '../../trial/result.ts';
import { duration } from './quantities.ts';

/** What is told of an event once; undefined where nothing is. */
export function lineOf(event: BatchEvent): string | undefined {
  switch (event.kind) {
    case 'started':
      return `batch ${event.batchId}: ${event.trials.length} trials`;
    case 'phase':
      return undefined;
    case 'retried':
      return `  ${nameOf(event.trial)}  attempt ${event.attempt} failed, once more\n${indented(event.message)}`;
    case 'broken-harness':
      return `  ${event.trial.run.variant.name}\n${indented(event.told)}`;
    case 'finished':
      return finishedLine(event.trial, event.result);
    case 'unstored':
      return `  ${nameOf(event.trial)}  finished, and cannot be stored yet: ${event.message}`;
    case 'note':
      return event.message;
    case 'waiting':
      return `trials wait for ${event.for}: ${event.reason}`;
    case 'resumed':
      return `${event.for} works again; trials go on`;
    case 'report':
      if (event.delivered.kind === 'delivered') return undefined;
      return `  ${nameOf(event.trial)}  not reported yet (${event.delivered.state}): ${event.delivered.answer}`;
  }
}

function finishedLine(trial: BatchTrial, result: TrialResult): string {
  const time = duration(result.finishedAt - result.startedAt);
  const line = `  ${mark(result.verdict)} ${nameOf(trial)}  ${result.verdict}  ${time}`;
  const { cause } = result;
  if (!cause) return line;
  const output = cause.output?.trim().split('\n').slice(-8).join('\n') ?? '';
  return `${line}\n${indented(`${cause.kind}, in ${cause.phase}: ${cause.message}\n${output}`)}`;
}

/** As lines below a trial's, and without what would steer the terminal: a sandbox may have printed it. */
function indented(text: string): string {
  return stripVTControlCharacters(text).trim().replace(/^/gm, '      ');
}

function mark(verdict: TrialResult['verdict']): string {
  if (verdict === 'passed') return styleText('green', '✓');
  return verdict === 'failed' ? styleText('red', '✗') : styleText('yellow', '○');
}

/** `case · variant #0` */
export function nameOf({ run, ordinal }: BatchTrial): string {
  return `${run.case.request.id} · ${run.variant.name} #${ordinal}`;
}
