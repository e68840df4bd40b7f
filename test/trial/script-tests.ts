import type { CaseTests } from '../../src/suite/case-tests.ts';

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
