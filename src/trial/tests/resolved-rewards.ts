import { rewards } from '../../bounds/tasks.ts';
import type { Container } from '../../engine/container.ts';
import type { TestReading } from '../../suite/case-tests.ts';
import type { Rewards } from '../../tasks/harbor/reward.ts';
import { logParsers } from '../../tasks/swe-bench/log-parsers.ts';
import { NamedResults } from '../../tasks/swe-bench/named-results.ts';
import { resolution } from '../../tasks/swe-bench/resolved.ts';
import { junitElements, outcomeOf } from '../../validate/formats/junit.ts';
import { fileAt, NotReadable } from './written-rewards.ts';

type NamedReading = Extract<TestReading, { kind: 'named-tests' }>;

/** The reward, with the tests that count and did not pass. */
export type Resolved = Extract<Rewards, { kind: 'rewards' }> & { summary: string };

/**
 * The reward `resolved` of tests with names: 1 if all that count have passed, else 0. Without any result
 * there is no reward. Call it when nothing runs in the sandbox.
 */
export async function resolvedRewards(
  container: Container,
  reading: NamedReading,
  output: string,
  signal: AbortSignal,
): Promise<Rewards | Resolved> {
  const read =
    reading.parser === 'junit'
      ? await reported(container, reading.report, signal)
      : logParsers[reading.parser](output);
  if (read.kind === 'none') return read;
  const nameOf = reading.parser === 'junit' ? junitName : (test: string) => test;
  const { resolved, failed, counting } = resolution(reading, (test) => read.results.of(nameOf(test)));
  const shown = failed.slice(0, rewards.count.shownTests).map((test) => JSON.stringify(test));
  const more = failed.length > shown.length ? ` and ${failed.length - shown.length} more` : '';
  return {
    kind: 'rewards',
    rewards: new Map([['resolved', resolved ? 1 : 0]]),
    summary: `${failed.length} of ${counting} tests did not pass: ${shown.join(', ')}${more}`,
  };
}

/** The results of a report in JUnit XML, by class and name. */
async function reported(container: Container, path: string, signal: AbortSignal) {
  const none = (problem: string) => ({ kind: 'none' as const, problem });
  let content: Buffer | undefined;
  try {
    content = await fileAt(container, path, signal, rewards.bytes.report);
  } catch (error) {
    if (error instanceof NotReadable) return none(error.message);
    throw error;
  }
  if (!content) return none(`the tests wrote no report to ${path}`);
  const read = junitElements(content.toString('utf8'));
  if ('problem' in read) return none(`the report of the tests cannot be read: ${read.problem}`);
  if (read.length === 0) return none('the report of the tests names no test');
  if (read.length > rewards.count.tests) return none('the report of the tests names too many tests');
  const results = new NamedResults();
  for (const test of read) {
    const { problem, skipped } = outcomeOf(test);
    const result = problem ? 'failed' : isSkipped(skipped) ? 'skipped' : 'passed';
    results.add(`${String(test['@classname'] ?? '')}::${String(test['@name'] ?? '')}`, result);
  }
  return { kind: 'results' as const, results };
}

/** A failure that was expected is written as skipped, and is a pass. */
function isSkipped(skipped: ReturnType<typeof outcomeOf>['skipped']): boolean {
  return skipped !== undefined && skipped['@type'] !== 'pytest.xfail';
}

/**
 * The class and the name that a report has for a test: `tests.test_a.Class::test_b[c]` for the name
 * `tests/test_a.py::Class::test_b[c]`, and `a.Class::test_b` for `test_b (a.Class)`.
 */
function junitName(test: string): string {
  const [, method, className] = /^(\S+) \((\S+)\)$/.exec(test) ?? [];
  if (className !== undefined) return `${className}::${method}`;
  const [, file, inner] = /^(\S+?)\.py::(.+)$/s.exec(test) ?? [];
  if (file === undefined || inner === undefined) return test;
  const bracket = inner.indexOf('[');
  const last = inner.lastIndexOf('::', bracket === -1 ? inner.length : bracket);
  const classes = last === -1 ? '' : `.${inner.slice(0, last).replaceAll('::', '.')}`;
  return `${file.replaceAll('/', '.')}${classes}::${inner.slice(last === -1 ? 0 : last + 2)}`;
}
