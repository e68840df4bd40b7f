import { stripVTControlCharacters } from 'node:util';
import { XMLBuilder } from 'fast-xml-parser';
import type { BatchSummary, TrialSummary } from './summary.ts';

const builder = new XMLBuilder({
  format: true,
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  suppressEmptyNode: true,
});

/** A batch as JUnit XML: a test suite for each run, a test case for each trial; a void trial is an error, not a failure. */
export function junitXml(summary: BatchSummary): string {
  const suites = summary.runs.map((run) => ({
    '@name': plain(`${run.case} · ${run.variant}`),
    '@tests': run.trials.length,
    '@failures': run.failed,
    '@errors': run.void,
    '@skipped': 0,
    '@time': seconds(run.durationMs),
    testcase: run.trials.map((trial) => ({
      '@classname': plain(`${run.case}.${run.variant}`),
      '@name': `trial ${trial.ordinal}`,
      '@time': seconds(trial.durationMs),
      ...problemOf(trial),
    })),
  }));
  const document = {
    '?xml': { '@version': '1.0', '@encoding': 'UTF-8' },
    testsuites: {
      '@name': plain(`batch ${summary.batchId}`),
      '@tests': summary.passed + summary.failed + summary.void,
      '@failures': summary.failed,
      '@errors': summary.void,
      '@time': seconds(summary.runs.reduce((sum, { durationMs }) => sum + durationMs, 0)),
      testsuite: suites,
    },
  };
  return builder.build(document);
}

function problemOf({ verdict, cause, failures }: TrialSummary): Record<string, unknown> {
  if (verdict === 'passed') return {};
  const why = cause ? `${cause.kind}, in ${cause.phase}: ${cause.message}` : failures[0];
  const problem = {
    '@message': plain(why?.split('\n')[0] ?? verdict),
    '@type': cause?.kind ?? 'verdict',
    '#text': plain([...(cause ? [why] : []), ...failures].join('\n')),
  };
  return verdict === 'failed' ? { failure: problem } : { error: problem };
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

/** Without what XML 1.0 cannot hold, and what would steer a terminal: a sandbox may have printed it. */
function plain(text: string): string {
  return stripVTControlCharacters(text)
    .replace(/[[\p{Cc}\ufffe\uffff]--[\t\n\r]]/gv, '')
    .toWellFormed();
}
