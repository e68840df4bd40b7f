import type { BatchEvent, BatchTrial } from '../../agent/run-batch.ts';
import { printedText } from '../../bounds/anybody.ts';
import { failuresOf } from '../../record/failures.ts';
import type { TrialResult } from '../../record/trial-record.ts';
import { lines, ours, type Printable, quoted, stack, styled, text } from '../../text/printable.ts';
import { duration } from './quantities.ts';

/** The line to print for an event; undefined if there is none. */
export function lineOf(event: BatchEvent): Printable | undefined {
  switch (event.kind) {
    case 'started':
      return text`batch ${event.batchId}: ${event.trials.length} trials`;
    case 'phase':
      return undefined;
    case 'retried':
      return stack([
        text`  ${nameOf(event.trial)}  attempt ${event.attempt} failed, retrying`,
        text`      ${lines(event.message)}`,
      ]);
    case 'broken-harness':
      return text`  ${event.trial.run.variant.name}\n      ${lines(event.told)}`;
    case 'finished':
      return finishedLine(event.trial, event.result);
    case 'unstored':
      return text`  ${nameOf(event.trial)}  finished, but cannot be stored yet: ${lines(event.message)}`;
    case 'note':
      return lines(event.message);
    case 'waiting':
      return text`trials wait for ${event.for}: ${lines(event.reason)}`;
    case 'resumed':
      return text`${event.for} works again; trials continue`;
    case 'report': {
      const { delivered } = event;
      if (delivered.kind === 'delivered') return undefined;
      const { state, answer } = delivered;
      return text`  ${nameOf(event.trial)}  not reported yet (${state}): ${lines(answer)}`;
    }
  }
}

function finishedLine(trial: BatchTrial, result: TrialResult): Printable {
  const { verdict, cause, finishedAt, startedAt } = result;
  const line = text`  ${mark(verdict)} ${nameOf(trial)}  ${verdict}  ${duration(finishedAt - startedAt)}`;
  if (!cause) return verdict === 'failed' ? stack([line, ...failureLines(result)]) : line;
  const why = text`      ${cause.kind}, in ${cause.phase}: ${lines(cause.message)}`;
  const output = cause.output?.trim() ?? '';
  return stack([
    line,
    why,
    ...(output === '' ? [] : [text`      ${quoted(output, printedText.count.outputLines)}`]),
  ]);
}

/** Why a trial failed: the first reason, and how many more there are. */
function failureLines(result: TrialResult): Printable[] {
  const [first, ...more] = failuresOf(result);
  if (first === undefined) return [];
  const others = more.length > 0 ? [text`      and ${more.length} more`] : [];
  return [text`      ${oneLine(first)}`, ...others];
}

/** A text's first line, with the next one if a colon announces it, as assertions have it. */
function oneLine(failure: string): string {
  const [first = '', next] = failure.split('\n').filter((line) => line.trim() !== '');
  return first.endsWith(':') && next !== undefined ? `${first} ${next.trim()}` : first;
}

function mark(verdict: TrialResult['verdict']): Printable {
  if (verdict === 'passed') return styled('green', ours('✓'));
  return verdict === 'failed' ? styled('red', ours('✗')) : styled('yellow', ours('○'));
}

/** `case · variant #0` */
export function nameOf({ run, ordinal }: BatchTrial): Printable {
  return text`${run.case.request.id} · ${run.variant.name} #${ordinal}`;
}

/** A key that is unique for each trial of a batch. */
export function keyOf({ run, ordinal }: BatchTrial): string {
  return `${run.id} ${ordinal}`;
}
