import { XMLBuilder } from 'fast-xml-parser';
import type { CheckedCase, CheckedState } from '../../check/checked-state.ts';
import { type Content, plainText } from '../../text/output.ts';
import { lines, type Redact, stack, text } from '../../text/printable.ts';
import type { BatchSummary, RunSummary, TrialSummary } from './summary.ts';

export type JunitTrial = Pick<
  TrialSummary,
  'ordinal' | 'durationMs' | 'verdict' | 'cause' | 'failures' | 'failedOutput'
>;
type JunitRun = Pick<RunSummary, 'case' | 'variant' | 'failed' | 'void' | 'durationMs' | 'unfinished'> & {
  trials: JunitTrial[];
};
/** What JUnit XML and CTRF say of a batch. */
export type JunitBatch = Pick<
  BatchSummary,
  'batchId' | 'passed' | 'failed' | 'void' | 'startedAt' | 'finishedAt'
> & {
  /** The id of the set whose batches these are. */
  set?: string | undefined;
  runs: JunitRun[];
};

/**
 * A batch as JUnit XML: a test suite for each run, a test case for each trial; a void trial is an error, not
 * a failure, and a trial without a result is skipped.
 */
export function junitXml(summary: JunitBatch, redact?: Redact): string {
  const plain = (content: Content) => plainText(content, redact);
  const suites = summary.runs.map((run) => ({
    '@name': plain(text`${run.case} · ${run.variant}`),
    '@tests': run.trials.length + skippedIn(run),
    '@failures': run.failed,
    '@errors': run.void,
    '@skipped': skippedIn(run),
    '@time': seconds(run.durationMs),
    testcase: [
      ...run.trials.map((trial) => ({
        '@classname': plain(text`${run.case}.${run.variant}`),
        '@name': `trial ${trial.ordinal}`,
        '@time': seconds(trial.durationMs),
        ...problemOf(trial, plain),
      })),
      ...(run.unfinished ?? []).map(({ ordinal, why }) => ({
        '@classname': plain(text`${run.case}.${run.variant}`),
        '@name': `trial ${ordinal}`,
        '@time': seconds(0),
        skipped: { '@message': plain(text`${why}`) },
      })),
    ],
  }));
  const skipped = summary.runs.reduce((sum, run) => sum + skippedIn(run), 0);
  return xmlText({
    testsuites: {
      '@name': plain(summary.set === undefined ? text`batch ${summary.batchId}` : text`${summary.set}`),
      '@tests': summary.passed + summary.failed + summary.void + skipped,
      '@failures': summary.failed,
      '@errors': summary.void,
      '@skipped': skipped,
      '@time': seconds(summary.runs.reduce((sum, { durationMs }) => sum + durationMs, 0)),
      testsuite: suites,
    },
  });
}

function skippedIn({ unfinished = [] }: JunitRun): number {
  return unfinished.length;
}

/** A document of JUnit XML. */
export function xmlText(document: { testsuites: Record<string, unknown> }): string {
  const builder = new XMLBuilder({
    format: true,
    ignoreAttributes: false,
    attributeNamePrefix: '@',
    suppressEmptyNode: true,
  });
  return builder.build({ '?xml': { '@version': '1.0', '@encoding': 'UTF-8' }, ...document });
}

/** Why a trial did not pass: in one line, and in full with what the failed checks printed. */
export function whyNot({ verdict, cause, failures, failedOutput }: JunitTrial) {
  const why = cause ? [`${cause.kind}, in ${cause.phase}: ${cause.message}`] : [];
  const all = [...why, ...failures];
  const [first = verdict] = all[0]?.split('\n', 1) ?? [];
  return { first, all: [...all, ...(failedOutput === undefined ? [] : ['', ...failedOutput.split('\n')])] };
}

function problemOf(trial: JunitTrial, plain: (content: Content) => string): Record<string, unknown> {
  if (trial.verdict === 'passed') return {};
  const { first, all } = whyNot(trial);
  const problem = {
    '@message': plain(text`${first}`),
    '@type': trial.cause?.kind ?? 'verdict',
    '#text': plain(stack(all.map(lines))),
  };
  return trial.verdict === 'failed' ? { failure: problem } : { error: problem };
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

/**
 * Checked cases as JUnit XML: a test suite for each case, a test case for each state of its workspace. A
 * state is an error if it has no verdict, although it should have one. It is skipped if the check was stopped
 * before it had a result.
 */
export function checkJunitXml(
  checked: readonly CheckedCase[],
  remarkOn: (state: CheckedState) => string,
  redact?: Redact,
): string {
  const plain = (content: Content) => plainText(content, redact);
  const problemOf = (state: CheckedState) => {
    if (state.asExpected) return {};
    const problem = {
      '@message': plain(text`${remarkOn(state)}`),
      '@type': state.timedOut ? 'timeout' : (state.causeKind ?? 'verdict'),
      '#text': plain(lines([remarkOn(state), state.solution ?? '', state.output ?? ''].join('\n'))),
    };
    return state.verdicts.includes('void') ? { error: problem } : { failure: problem };
  };
  const suites = checked.map(({ id, states, unfinished = [] }) => ({
    '@name': plain(text`${id}`),
    '@tests': states.length + unfinished.length,
    '@failures': states.filter((state) => 'failure' in problemOf(state)).length,
    '@errors': states.filter((state) => 'error' in problemOf(state)).length,
    '@skipped': unfinished.length,
    testcase: [
      ...states.map((state) => ({
        '@classname': plain(text`${id}`),
        '@name': state.state,
        ...problemOf(state),
      })),
      ...unfinished.map(({ state, why }) => ({
        '@classname': plain(text`${id}`),
        '@name': state,
        skipped: { '@message': plain(text`${why}`) },
      })),
    ],
  }));
  return xmlText({ testsuites: { '@name': 'offsite check', testsuite: suites } });
}
