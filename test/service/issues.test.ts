import { expect, test } from 'vitest';
import { serviceRequests } from '../../src/bounds/callers.ts';
import type { OperationName } from '../../src/contract/operations.ts';
import { openTestService, report, startRequest } from './test-service.ts';

const reported = (change: Record<string, unknown>) => report('run_1', 0, { passed: true }, change);
const outcome = (found: Record<string, unknown>) => report('run_1', 0, found);

test.for<[string, OperationName, unknown, [tag: string, path: (string | number)[]][]]>([
  [
    'a field is missing',
    'evals.start',
    startRequest({ suite: { id: 's', name: 'S' } }),
    [['Missing', ['suite', 'prompt']]],
  ],
  ['a field has another type', 'evals.start', startRequest({ local: 'yes' }), [['Type', ['local']]]],
  ['a field is null', 'evals.start', startRequest({ trigger: null }), [['Type', ['trigger']]]],
  ['a field is unknown', 'evals.start', startRequest({ priority: 1 }), [['Unexpected', ['priority']]]],
  [
    'an inner field is unknown',
    'evals.start',
    startRequest({ variants: [{ model: 'm', sandbox: 'x' }] }),
    [['Unexpected', ['variants', 0, 'sandbox']]],
  ],
  [
    'a source or a user is of an unknown kind',
    'evals.start',
    startRequest({
      cases: [
        { id: 'csv', name: 'n', source: { kind: 'git' }, user: { kind: 'human', goal: '', prompt: '' } },
      ],
    }),
    [
      ['Type', ['cases', 0, 'user', 'kind']],
      ['Type', ['cases', 0, 'source', 'kind']],
    ],
  ],
  ['there are no cases', 'evals.start', startRequest({ cases: [] }), [['Refinement', ['cases']]]],
  ['there are too many trials', 'evals.start', startRequest({ trials: 11 }), [['Refinement', ['trials']]]],
  ['a count is no whole number', 'evals.start', startRequest({ trials: 1.5 }), [['Refinement', ['trials']]]],
  ['an id is empty', 'evals.runs.list', { caseId: '' }, [['Refinement', ['caseId']]]],
  ['an id has a NUL', 'evals.runs.list', { caseId: 'a\0' }, [['Refinement', ['caseId']]]],
  ['an id has half a character', 'evals.runs.list', { caseId: '\ud800' }, [['Refinement', ['caseId']]]],
  ['the body is a list', 'evals.runs.list', [], [['Type', []]]],
  ['the body is null', 'auth.whoami', null, [['Type', []]]],
  [
    'an event lacks a field',
    'evals.reportTrial',
    reported({ events: [{ _tag: 'command', exitCode: 1 }] }),
    [['Missing', ['trial', 'events', 0, 'command']]],
  ],
  [
    'an event has a field more',
    'evals.reportTrial',
    reported({ events: [{ _tag: 'command', command: 'ls', cwd: '/' }] }),
    [['Unexpected', ['trial', 'events', 0, 'cwd']]],
  ],
  [
    'an event has no _tag',
    'evals.reportTrial',
    reported({ events: [{ at: 1 }] }),
    [['Missing', ['trial', 'events', 0, '_tag']]],
  ],
  [
    'an event is no object',
    'evals.reportTrial',
    reported({ events: [7] }),
    [['Type', ['trial', 'events', 0]]],
  ],
  [
    'a digest is none',
    'evals.reportTrial',
    outcome({ artifacts: [{ path: 'a', byteSize: 1, sha256: 'x' }] }),
    [['Refinement', ['trial', 'outcome', 'artifacts', 0, 'sha256']]],
  ],
  [
    'an ordinal is negative',
    'evals.reportTrial',
    reported({ ordinal: -1 }),
    [['Refinement', ['trial', 'ordinal']]],
  ],
  [
    'a stored field is reported',
    'evals.reportTrial',
    outcome({ validations: [{ id: 'v', index: 0, name: 'v', status: 'passed' }] }),
    [['Unexpected', ['trial', 'outcome', 'validations', 0, 'status']]],
  ],
  [
    'several things are wrong',
    'evals.rerunCell',
    { id: 1, trials: 0, more: 1 },
    [
      ['Type', ['id']],
      ['Missing', ['cellKey']],
      ['Refinement', ['trials']],
      ['Unexpected', ['more']],
    ],
  ],
])('when %s, the issue says so at its place', async ([, operation, body, expected]) => {
  await using service = openTestService();
  const issues = await service.issues(operation, body);
  expect(issues.map(({ _tag, path }) => [_tag, path])).toEqual(expected);
});

test('a field named like a method of every object is as unknown as any other', async () => {
  await using service = openTestService();
  const body = '{"caseId":"csv","constructor":1,"toString":2,"hasOwnProperty":3}';
  expect((await service.issues('evals.runs.list', body)).map(({ _tag, path }) => [_tag, path])).toEqual(
    ['constructor', 'toString', 'hasOwnProperty'].map((name) => ['Unexpected', [name]]),
  );
});

test('a field named __proto__ is refused wherever it is, free-form places included', async () => {
  await using service = openTestService();
  expect(await service.issues('auth.whoami', '{"__proto__":{"admin":true}}')).toMatchObject([
    { _tag: 'Unexpected', path: ['__proto__'] },
  ]);
  const text = JSON.stringify(startRequest({ cases: [{ id: 'csv', name: 'n', variables: { a: [{}] } }] }));
  expect(await service.issues('evals.start', text.replace('[{}]', '[{"__pro\\u0074o__":1}]'))).toMatchObject([
    { _tag: 'Unexpected', path: ['cases', 0, 'variables', 'a', 0, '__proto__'] },
  ]);
});

test('a number beyond a double is refused and not turned into another', async () => {
  await using service = openTestService();
  const text = JSON.stringify(startRequest({ cases: [{ id: 'csv', name: 'n', variables: { a: 17 } }] }));
  expect(await service.issues('evals.start', text.replace('17', '1e999'))).toMatchObject([
    { _tag: 'Refinement', path: ['cases', 0, 'variables', 'a'] },
  ]);
});

test('a body with very many things wrong is answered with the first of them', async () => {
  await using service = openTestService();
  const issues = await service.issues('evals.reportTrial', reported({ events: Array(50_000).fill({}) }));
  expect(issues).toHaveLength(serviceRequests.count.issues);
});
