import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runs } from '../short-tests.ts';
import {
  between,
  count,
  type Described,
  type Fault,
  filled,
  flag,
  forExample,
  freeForm,
  id,
  integer,
  list,
  name,
  number,
  object,
  only,
  sha256,
  text,
  withFault,
} from './described.ts';
import { openTestService, startRequest, type TestService, withoutContradictions } from './test-service.ts';

/**
 * The requests that the specification shows, with its limits, described by hand. Where it does not say which
 * fields are required, those are that the embedded service cannot do without.
 */

const suiteCase = object(
  {
    id,
    name,
    user: object({ kind: only('simulated'), goal: text, prompt: text }),
    prepare: object({ name: text, source: text }),
    source: object({ kind: only('empty') }),
    tags: list(name, 0, 64),
    variables: freeForm,
    validator: object(
      {
        name: text,
        source: text,
        capture: flag,
        manifest: list(object({ index: count, name: text })),
        sourceFiles: list(object({ path: filled, content: text })),
      },
      ['capture', 'manifest', 'sourceFiles'],
    ),
    verify: text,
  },
  ['user', 'prepare', 'source', 'tags', 'variables', 'validator', 'verify'],
);

const variant = object(
  { model: filled, credentials: object({ harnessConnectionId: id, sandboxConnectionId: id }) },
  ['credentials'],
);

const start = object(
  {
    cases: list(suiteCase, 1, 100),
    suite: object({ id, name, prompt: text }),
    trials: between(1, 10),
    variants: list(variant, 1, 20),
    local: flag,
    trigger: object({ url: text }),
  },
  ['local', 'trigger'],
);

const captured = object({ text, truncated: flag }, ['truncated']);
const timing = { startedAt: number, durationMs: integer };
const call = object({ index: integer, ...timing, input: captured, output: captured, error: captured }, [
  'startedAt',
  'durationMs',
  'input',
  'output',
  'error',
]);
const validation = object(
  {
    id: text,
    index: integer,
    name: text,
    ...timing,
    message: text,
    exitCode: number,
    truncated: flag,
    input: captured,
    output: captured,
    error: captured,
    calls: list(call),
    logs: list(object({ index: integer, at: number, value: captured }, ['at', 'value'])),
  },
  [
    'startedAt',
    'durationMs',
    'message',
    'exitCode',
    'truncated',
    'input',
    'output',
    'error',
    'calls',
    'logs',
  ],
);
const judgment = object(
  {
    name: text,
    model: text,
    evaluator: text,
    score: number,
    choice: text,
    reason: text,
    threshold: number,
    durationMs: integer,
    error: text,
  },
  ['model', 'evaluator', 'score', 'choice', 'reason', 'threshold', 'durationMs', 'error'],
);

const outcomeFields = {
  commandCount: number,
  exitCode: number,
  modelMs: number,
  sandboxMs: number,
  passed: flag,
  verifySteps: list(object({ command: text, exitCode: number })),
  voidFields: list(text),
  artifacts: list(object({ path: text, byteSize: count, sha256 })),
  validations: list(validation),
  judgments: list(judgment),
};

const usageFields = {
  cacheReadTokens: number,
  cacheWriteTokens: number,
  inputTokens: number,
  outputTokens: number,
  totalTokens: number,
  costUsd: number,
};

const report = (run: Described) =>
  object({
    id: run,
    trial: object(
      {
        caseName: text,
        ordinal: count,
        taskIndex: count,
        sandboxId: text,
        events: list(object({ _tag: forExample('Started'), model: text, sessionId: text, at: number })),
        outcome: object(outcomeFields, Object.keys(outcomeFields)),
        usage: object(usageFields, Object.keys(usageFields)),
      },
      ['sandboxId', 'usage'],
    ),
  });

let service: TestService;
let known: { run: string; batch: string; cellKey: string };

beforeAll(async () => {
  service = openTestService();
  const batch = await service.succeed('evals.start', startRequest({ trials: 10 }));
  const { runs } = await service.succeed('evals.runs.list', { caseId: 'csv' });
  known = {
    run: batch.runs[0]?.id ?? '',
    batch: batch.id,
    cellKey: `csv:${runs[0]?.variant?.id}`,
  };
});
afterAll(() => service[Symbol.asyncDispose]());

/** Sometimes an id of something that exists. */
const orKnown = (which: keyof typeof known): Described => ({
  values: fc.oneof(
    id.values,
    fc.constant(undefined).map(() => known[which]),
  ),
  faults: id.faults,
});

const operations: [name: string, request: Described, states: number[]][] = [
  ['auth.whoami', { values: freeForm.values, faults: (_, path) => [{ path, wrong: 'x' }] }, []],
  ['evals.start', start, [409]],
  ['evals.runs.list', object({ caseId: id, page: count, variant: text }, ['page', 'variant']), []],
  [
    'evals.rerunCell',
    object({ id: orKnown('batch'), cellKey: orKnown('cellKey'), trials: between(1, 10) }, ['trials']),
    [404],
  ],
  ['connectors.integrations', object({}), []],
  ['evals.reportTrial', report(orKnown('run')), [404, 409]],
  ['evals.cases.list', object({ suite: filled }, ['suite']), []],
  ['prompts.get', object({ id }), [404]],
  // Ours.
  ['evals.baseline', object({ caseId: id, suite: id, variant: id }, ['suite', 'variant']), []],
  ['prompts.write', object({ id, content: text }), []],
];

/** A service that is asked to name a case twice may refuse it; the specification shows lists of cases. */
function namesCaseTwice(request: unknown): boolean {
  const { cases } = request as { cases?: { id: string }[] };
  return cases !== undefined && new Set(cases.map((one) => one.id)).size < cases.length;
}

test.for(operations)(
  '%s accepts any request that the specification allows',
  { timeout: 60_000 },
  async ([name, request, states]) => {
    const allowed = request.values.filter((one) => !namesCaseTwice(one));
    await fc.assert(
      fc.asyncProperty(allowed, async (body) => {
        // The specification allows numbers that cannot be true of a trial.
        const sent = name === 'evals.reportTrial' ? withoutContradictions(body) : body;
        const { status, body: said } = await service.ask(name, JSON.stringify(sent));
        expect([200, ...states], JSON.stringify(said)).toContain(status);
        if (name !== 'evals.start' || status !== 200) return;
        for (const { id: caseId } of (body as { cases: { id: string }[] }).cases) {
          expect((await service.ask('evals.runs.list', { caseId })).status).toBe(200);
        }
      }),
      { numRuns: runs(150) },
    );
  },
);

test.for(operations)(
  '%s refuses any other request with its path',
  { timeout: 60_000 },
  async ([name, request]) => {
    const faulty = request.values
      .filter((one) => !namesCaseTwice(one))
      .chain((body) => {
        const faults = request.faults(body, []);
        return fc.record({ body: fc.constant(body), fault: fc.constantFrom(...faults) });
      });
    await fc.assert(
      fc.asyncProperty(faulty, async ({ body, fault }: { body: unknown; fault: Fault }) => {
        const issues = await service.issues(name as never, withFault(body, fault));
        const paths = issues.map(({ path }) => JSON.stringify(path));
        expect(paths).toContain(JSON.stringify(fault.path));
      }),
      { numRuns: runs(300) },
    );
  },
);

test('the limits of the specification can be used up: 100 cases, 20 variants, 10 trials, long texts', async () => {
  const cases = Array.from({ length: 100 }, (_, n) => ({
    id: `full-${n}`,
    name: 'n',
    verify: `${'echo {{ '.repeat(600)}${'x'.repeat(50_000)}`,
    variables: { text: 'x'.repeat(10_000) },
  }));
  const variants = Array.from({ length: 20 }, (_, n) => ({ model: `m${n}` }));
  const suite = { id: 's', name: 'S', prompt: `{{text}} ${'p'.repeat(400 * 1024)}` };
  const { runs } = await service.succeed('evals.start', startRequest({ suite, cases, variants, trials: 10 }));
  expect(runs).toHaveLength(2_000);
  const { runs: listed } = await service.succeed('evals.runs.list', { caseId: 'full-99' });
  expect(listed.map(({ setup }) => setup?.prompt?.length)).toEqual(Array(20).fill(10_001 + 400 * 1024));
});
