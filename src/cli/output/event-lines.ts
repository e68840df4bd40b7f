import { createHash } from 'node:crypto';
import type { BatchEvent, BatchTrial } from '../../agent/run-batch.ts';
import { printedText } from '../../bounds/anyone.ts';
import type { Cause } from '../../record/cause.ts';
import { failuresOf, harnessFailure } from '../../record/failures.ts';
import type { TrialRecord } from '../../record/trial-record.ts';
import { usedImages } from '../../suite/dockerfile.ts';
import { excerpt, lines, ours, type Printable, stack, text } from '../../text/printable.ts';
import { duration, firstNames, plural } from '../../text/quantities.ts';
import { mark } from '../show/layout.ts';

/**
 * Returns the line to print for an event; undefined if there is none. The failure of a prepare or an install,
 * and a missing image, are printed once, not again for each trial that needs them.
 *
 * @param isRehearsal whether no model does any work, so that trials of agents are expected to fail
 */
export function eventLines(isRehearsal = false): (event: BatchEvent) => Printable | undefined {
  const failures = new PrintedFailures();
  const images = new NeededImages();
  return (event) => {
    if (event.kind === 'started') images.add(event.trials);
    if (event.kind === 'build') {
      const { what, image, state } = event.build;
      return state.kind === 'failed' && failures.isNew(what, state.cause)
        ? text`  ${mark('void')} ${what} failed: ${images.needing(image)}\n${causeLines(state.cause)}`
        : undefined;
    }
    if (event.kind === 'retried' && failures.isPrintedIn(event.message)) return undefined;
    if (event.kind === 'finished') {
      const { trial, result } = event;
      const { cause } = result;
      const isPrinted =
        cause !== undefined &&
        ((['sandbox', 'build'].includes(cause.phase) && failures.isPrintedIn(cause.message)) ||
          (isPreparing(cause) && !failures.isNew(stepOf(trial, cause), cause)));
      const isExpected =
        isRehearsal && result.verdict === 'failed' && trial.run.variant.modelConfig !== undefined;
      return finishedLine(trial, result, { isPrinted, isExpected });
    }
    return lineOf(event);
  };
}

/** The failures of prepares and installs that were printed. */
class PrintedFailures {
  readonly #printed = new Set<string>();

  /** Whether a failure was printed neither for this step nor with this output. Notes it as printed. */
  isNew(step: string, { phase, message, output = '' }: Cause): boolean {
    const hash = createHash('sha256')
      .update(JSON.stringify([phase, withoutPlace(message), output]))
      .digest('hex');
    const keys = [hash, JSON.stringify([step, message]), withoutPlace(message)];
    const isNew = !keys.slice(0, 2).some((key) => this.#printed.has(key));
    for (const key of keys) this.#printed.add(key);
    return isNew;
  }

  /** Whether a failure with this message was printed, for this case or another one. */
  isPrintedIn(message: string): boolean {
    return this.#printed.has(withoutPlace(message));
  }
}

/** A message without the place (`FILE:LINE:COLUMN`) that names an image, which differs between cases. */
function withoutPlace(message: string): string {
  return message.replace(/^\S+?:\d+(?::\d+)?: /, '');
}

/** The cases that need an image, because they or their Dockerfiles name it. */
class NeededImages {
  readonly #cases = new Map<string, Set<string>>();

  add(trials: readonly BatchTrial[]): void {
    for (const { run } of trials) {
      // A plan that an older Offsite stored has no environments.
      const { image, build } = run.case.local.environment ?? {};
      const bases = build ? usedImages(build.dockerfile, build.args) : [];
      for (const { name } of [...(image ? [image] : []), ...bases]) {
        const cases = this.#cases.get(name) ?? new Set();
        this.#cases.set(name, cases.add(run.case.request.id));
      }
    }
  }

  needing(image: string | undefined): Printable {
    const cases = [...(this.#cases.get(image ?? '') ?? [])];
    if (cases.length === 0) return ours('the trials that need it are void');
    return text`all trials of ${firstNames(cases, named)} need it`;
  }
}

/** How many cases a line names. */
const named = 10;

/** Whether the cause is in the preparation of the case, and so the same for all its trials. */
function isPreparing({ kind, phase }: Cause): boolean {
  return ['build', 'install', 'prepare'].includes(phase) || (kind === 'task' && phase === 'sandbox');
}

/** What failed for a trial: its case's prepare, or an install, which all cases of its variant share. */
function stepOf({ run }: BatchTrial, { phase }: Cause): string {
  if (phase === 'install') return `install of ${run.variant.name}`;
  return `${phase} of ${run.case.request.name}`;
}

function lineOf(event: Exclude<BatchEvent, { kind: 'build' | 'finished' }>): Printable | undefined {
  switch (event.kind) {
    case 'started':
      return text`batch ${event.batchId}: ${startedWords(event)}`;
    case 'phase':
    case 'step':
    case 'put-back':
      return undefined;
    case 'retried':
      return stack([
        text`  ${nameOf(event.trial)}  attempt ${event.attempt} failed, retrying`,
        text`      ${lines(event.message)}`,
      ]);
    case 'broken-harness':
      return text`  ${event.trial.run.variant.name}\n      ${lines(event.message)}`;
    case 'unstored':
      return text`  ${nameOf(event.trial)}  finished, but cannot be stored yet: ${lines(event.message)}`;
    case 'note':
      return lines(event.message);
    case 'waiting':
      return text`further trials wait for ${event.for}${event.upToMs === undefined ? '' : `, up to ${duration(event.upToMs)}`}: ${lines(event.reason)}`;
    case 'resumed':
      return text`${event.for} works again; trials continue`;
    case 'report': {
      const { state, answer } = event.delivered;
      if (answer === undefined) return undefined;
      if (state === 'delivered') return text`  ${nameOf(event.trial)}  delivered; ${lines(answer)}`;
      if (state === 'superseded')
        return text`  ${nameOf(event.trial)}  its result does not count: ${lines(answer)}`;
      return text`  ${nameOf(event.trial)}  not reported yet (${state}): ${lines(answer)}`;
    }
  }
}

/** How many trials run now, and of a resumed batch how many were finished before. */
function startedWords({ trials, before }: BatchEvent & { kind: 'started' }): string {
  if (before === 0) return plural(trials.length, 'trial');
  const all = plural(trials.length + before, 'trial');
  return `${trials.length} of ${all} ${trials.length === 1 ? 'runs' : 'run'} now; ${before} finished before`;
}

interface HowFinished {
  /** Whether its cause was printed before. */
  isPrinted: boolean;
  /** Whether the trial failed because no model did the work. */
  isExpected: boolean;
}

function finishedLine(
  trial: BatchTrial,
  result: TrialRecord,
  { isPrinted, isExpected }: HowFinished,
): Printable {
  const { verdict, cause, finishedAt, startedAt, engine } = result;
  if (cause && isPrinted) {
    return text`  ${mark(verdict)} ${nameOf(trial)}  ${verdict}: its ${cause.phase} failed`;
  }
  const on = engine === undefined ? text`` : text` on ${engine}`;
  const [sign, word] = isExpected ? [ours('–'), 'failed, as no model worked'] : [mark(verdict), verdict];
  const line = text`  ${sign} ${nameOf(trial)}  ${word}  ${duration(finishedAt - startedAt)}${on}`;
  if (!cause) return verdict === 'failed' ? stack([line, ...failureLines(result)]) : line;
  return stack([line, causeLines(cause)]);
}

/** The first lines are shown too: a program may print what is wrong first, and then its usage. */
const printedOutput = {
  first: printedText.count.firstLines,
  last: printedText.count.outputLines,
  characters: printedText.bytes.line,
};

function causeLines({ kind, phase, message, output = '' }: Cause): Printable {
  const why = text`      ${kind}, in ${phase}: ${lines(message)}`;
  if (output.trim() === '') return why;
  return stack([why, text`      ${excerpt(withoutNotices(output).trim(), printedOutput)}`]);
}

/**
 * Why a trial failed: the first reason, how the harness ended if that was not as it should, and how many more
 * reasons there are.
 */
function failureLines(result: TrialRecord): Printable[] {
  const reasons = failuresOf(result);
  const shown = reasons.filter((reason, index) => index === 0 || reason === harnessFailure(result));
  const more = reasons.length - shown.length;
  const others = more > 0 ? [text`      and ${more} more`] : [];
  return [...shown.map((reason) => text`      ${oneLine(reason)}`), ...others];
}

/** A text's first line, with the next one if a colon announces it, as assertions have it. */
function oneLine(failure: string): string {
  const [first = '', next] = failure.split('\n').filter((line) => line.trim() !== '');
  return first.endsWith(':') && next !== undefined ? `${first} ${next.trim()}` : first;
}

/** `case · variant #0` */
function nameOf({ run, ordinal }: BatchTrial): Printable {
  return text`${run.case.request.id} · ${run.variant.name} #${ordinal}`;
}

/** Lines of npm that stand between an error and the end of its output, and say nothing about it. */
const notices = /^npm (?:notice|warn|error A complete log|error(?: \w+)? *$).*(?:\r?\n)?/gm;

/** Output of a script without what npm says at its end, so that the last lines are about the error. */
function withoutNotices(output: string): string {
  return output.replaceAll(notices, '');
}
