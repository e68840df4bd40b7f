import type { CaseTests } from '../../src/suite/case-tests.ts';
import type { TrialSpec, TrialStep } from '../../src/trial/spec.ts';

/** Tests of one script, which writes its rewards as the tasks of Harbor do. */
export function scriptTests(script: string, change: Partial<CaseTests> = {}): CaseTests {
  return {
    files: [{ path: '/tests/test.sh', content: Buffer.from(`${script}\n`), mode: 0o644 }],
    emptied: ['/tests', '/logs/verifier'],
    command: ['bash', '/tests/test.sh'],
    env: {},
    timeoutMs: 60_000,
    reading: {
      kind: 'reward-files',
      json: '/logs/verifier/reward.json',
      text: '/logs/verifier/reward.txt',
    },
    thresholds: { default: 1, byName: {} },
    ...change,
  };
}

/** A step that is graded by such a script, with whatever reward. */
export function scriptStep(name: string, script: string, change: Partial<TrialStep> = {}): TrialStep {
  return {
    name,
    prompt: name,
    variables: {},
    files: [],
    emptied: [],
    artifacts: [],
    agent: {},
    tests: scriptTests(script, { thresholds: { byName: {} } }),
    ...change,
  };
}

/** Steps whose rewards are averaged, and must be 1 then. */
export function meanOf(list: TrialStep[]): NonNullable<TrialSpec['steps']> {
  return { list, strategy: 'mean', thresholds: { default: 1, byName: {} } };
}
