import type { CheckedCase, CheckedState } from '../../check/checked-state.ts';
import { type Content, plainText } from '../../text/output.ts';
import { lines, type Redact, text } from '../../text/printable.ts';
import { xmlText } from './junit.ts';

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
