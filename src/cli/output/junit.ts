import { randomUUID } from 'node:crypto';
import { XMLBuilder } from 'fast-xml-parser';
import { versionOf } from '../../base/version.ts';
import type { CheckedCase, CheckedState } from '../../check/checked-state.ts';
import { type Content, plainText } from '../../text/output.ts';
import { lines, type Redact, stack, text } from '../../text/printable.ts';
import type { BatchSummary, Incomplete, RunSummary, TrialSummary } from './summary.ts';

type ReportedTrial = Pick<
  TrialSummary,
  'ordinal' | 'durationMs' | 'verdict' | 'cause' | 'failures' | 'failedOutput'
>;
type ReportedRun = Pick<RunSummary, 'case' | 'variant' | 'unfinished'> & { trials: ReportedTrial[] };

/** What JUnit XML and CTRF say of a batch. */
export interface ReportedBatch
  extends Pick<BatchSummary, 'batchId' | 'startedAt' | 'finishedAt' | 'incomplete'> {
  /** The id of the set whose batches these are. */
  set?: string | undefined;
  runs: ReportedRun[];
}

/** A trial, or a checked state of a case. */
interface Test {
  name: string;
  /** Undefined for a state: its gradings may be of an earlier check. */
  ms?: number;
  problem?:
    | { kind: 'failure' | 'error' | 'skipped'; first: string; all?: string[]; type?: string }
    | undefined;
}

/**
 * A batch as JUnit XML: a test suite for each run, a test case for each trial; a void trial is an error, not
 * a failure. For a trial without a result, see {@link unfinishedProblem}.
 */
export function junitXml({ batchId, set, runs, incomplete }: ReportedBatch, redact?: Redact): string {
  const suites = runs.map((run) => ({
    name: text`${run.case} · ${run.variant}`,
    className: text`${run.case}.${run.variant}`,
    tests: testsOf(run, incomplete).map(({ ordinal, ...test }) => ({ name: `trial ${ordinal}`, ...test })),
  }));
  return xmlText(set === undefined ? text`batch ${batchId}` : text`${set}`, suites, redact);
}

/** The trials of a run, with those that have no result. */
function testsOf({ trials, unfinished = [] }: ReportedRun, incomplete: ReportedBatch['incomplete']) {
  return [
    ...trials.map(({ ordinal, verdict, durationMs: ms, cause, failures = [], failedOutput }) => {
      const why = cause ? [`${cause.kind}, in ${cause.phase}: ${cause.message}`, ...failures] : failures;
      const [first = verdict] = why[0]?.split('\n', 1) ?? [];
      const all = failedOutput === undefined ? why : [...why, '', ...failedOutput.split('\n')];
      const kind = verdict === 'failed' ? ('failure' as const) : ('error' as const);
      const problem = verdict === 'passed' ? undefined : { kind, first, all, type: cause?.kind ?? 'verdict' };
      return { ordinal, ms, verdict, problem };
    }),
    ...unfinished.map(({ ordinal, why }) => {
      const problem = { ...unfinishedProblem(why, incomplete?.kind), all: undefined };
      return { ordinal, ms: 0, verdict: undefined, problem };
    }),
  ];
}

/**
 * Somebody who interrupts a command skips the rest of it. But if the command failed, what is left is an
 * error: CI systems show a report whose tests passed or were skipped as a good one.
 */
function unfinishedProblem(first: string, ended: Incomplete['kind'] | undefined) {
  if (ended !== 'failed') return { kind: 'skipped' as const, first };
  return { kind: 'error' as const, first, type: 'unfinished' };
}

/**
 * Checked cases as JUnit XML: a test suite for each case, a test case for each state of its workspace. A
 * state is an error if it has no verdict, although it should have one. For one without a result, see
 * {@link unfinishedProblem}.
 */
export function checkJunitXml(
  checked: readonly CheckedCase[],
  remarkOn: (state: CheckedState) => string,
  redact?: Redact,
): string {
  const testOf = (state: CheckedState): Test => {
    if (state.asExpected) return { name: state.state };
    const kind = state.verdicts.includes('void') ? 'error' : 'failure';
    const type = state.timedOut ? 'timeout' : (state.causeKind ?? 'verdict');
    const first = remarkOn(state);
    const all = [[first, state.solution ?? '', state.output ?? ''].join('\n')];
    return { name: state.state, problem: { kind, first, all, type } };
  };
  const suites = checked.map(({ id, states, unfinished = [] }) => ({
    name: text`${id}`,
    className: text`${id}`,
    tests: [
      ...states.map(testOf),
      ...unfinished.map(({ state, why, ended }) => ({ name: state, problem: unfinishedProblem(why, ended) })),
    ],
  }));
  return xmlText('offsite check', suites, redact);
}

interface Suite {
  name: Content;
  className: Content;
  tests: Test[];
}

function xmlText(name: Content, suites: readonly Suite[], redact: Redact | undefined): string {
  const plain = (content: Content) => plainText(content, redact);
  const problemOf = ({ kind, first, all, type }: NonNullable<Test['problem']>) => ({
    [kind]: {
      '@message': plain(text`${first}`),
      ...(type !== undefined && { '@type': type }),
      ...(all && { '#text': plain(stack(all.map(lines))) }),
    },
  });
  const testsuite = suites.map(({ name, className, tests }) => ({
    '@name': plain(name),
    ...countsOf(tests),
    testcase: tests.map((test) => ({
      '@classname': plain(className),
      '@name': test.name,
      ...timeOf([test]),
      ...(test.problem && problemOf(test.problem)),
    })),
  }));
  const builder = new XMLBuilder({
    format: true,
    ignoreAttributes: false,
    attributeNamePrefix: '@',
    suppressEmptyNode: true,
  });
  const counts = countsOf(suites.flatMap(({ tests }) => tests));
  return builder.build({
    '?xml': { '@version': '1.0', '@encoding': 'UTF-8' },
    testsuites: { '@name': plain(name), ...counts, testsuite },
  });
}

function countsOf(tests: readonly Test[]) {
  const count = (kind: string) => tests.filter(({ problem }) => problem?.kind === kind).length;
  const [failures, errors, skipped] = [count('failure'), count('error'), count('skipped')];
  const counts = { '@tests': tests.length, '@failures': failures, '@errors': errors, '@skipped': skipped };
  return { ...counts, ...timeOf(tests) };
}

/** In seconds; nothing if it is not known of one of them. */
function timeOf(tests: readonly Test[]) {
  if (tests.some(({ ms }) => ms === undefined)) return {};
  return { '@time': (tests.reduce((sum, { ms = 0 }) => sum + ms, 0) / 1000).toFixed(3) };
}

const statusOf = { failure: 'failed', error: 'other', skipped: 'skipped' } as const;

/**
 * A batch as a document of CTRF, the Common Test Report Format (https://ctrf.io), with a test for each trial.
 * What is an error in JUnit XML is `other`.
 */
export function ctrfJson(batch: ReportedBatch, { redact, now }: { redact?: Redact; now: number }): string {
  const plain = (content: string) => plainText(text`${content}`, redact);
  const tests = batch.runs.flatMap((run) => {
    const suite = [plain(run.case), plain(run.variant)];
    return testsOf(run, batch.incomplete).map(({ ordinal, ms, verdict, problem }) => ({
      name: `${suite.join(' · ')} #${ordinal}`,
      suite,
      status: problem ? statusOf[problem.kind] : 'passed',
      duration: Math.round(ms),
      ...(verdict !== undefined && { rawStatus: verdict }),
      ...(problem && { message: plain(problem.first) }),
      ...(problem?.all && { trace: plainText(lines(problem.all.join('\n')), redact) }),
    }));
  });
  const { startedAt: start = now, finishedAt: stop = start } = batch;
  const count = (status: string) => tests.filter((test) => test.status === status).length;
  const document = {
    reportFormat: 'CTRF',
    specVersion: '0.0.0',
    reportId: randomUUID(),
    timestamp: new Date(now).toISOString(),
    generatedBy: 'offsite',
    runId: batch.set ?? batch.batchId,
    results: {
      tool: { name: 'offsite', version: versionOf() },
      summary: {
        tests: tests.length,
        passed: count('passed'),
        failed: count('failed'),
        skipped: count('skipped'),
        pending: 0,
        other: count('other'),
        start: Math.round(start),
        stop: Math.round(stop),
      },
      tests,
    },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}
