import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { z } from 'zod';
import { Whoami } from '../../src/contract/definition.ts';
import { DecodeErrorBody } from '../../src/contract/errors.ts';
import { operations } from '../../src/contract/operations.ts';
import { receiving } from '../../src/contract/receiving.ts';
import { RunRecord, RunsResponse } from '../../src/contract/record.ts';
import '../short-tests.ts';
import { addExtraFields, anyJson, nullifyOptional, replaceOpenValues, valuesOf } from './arbitrary.ts';

/** Every answer of the table that has a documented shape. */
const answers = Object.entries(operations)
  .map(([name, { response }]) => [name, response as z.ZodType] as const)
  .concat([['an error body', DecodeErrorBody]]);

for (const [name, schema] of answers) {
  test(`${name}: what the contract describes is received unchanged`, () => {
    fc.assert(
      fc.property(valuesOf(schema), (value) => {
        expect(schema.safeParse(value).error).toBeUndefined();
        expect(receiving(schema).parse(value)).toEqual(value);
      }),
    );
  });

  test(`${name}: fields it does not know survive, at any depth`, () => {
    fc.assert(
      fc.property(valuesOf(schema), anyJson, (value, extra) => {
        const more = addExtraFields(value, extra);
        expect(JSON.stringify(receiving(schema).parse(more))).toBe(JSON.stringify(more));
      }),
    );
  });

  test(`${name}: enumerations take values nobody has seen yet`, () => {
    fc.assert(
      fc.property(valuesOf(schema), fc.string(), (value, unseen) => {
        const other = replaceOpenValues(schema, value, unseen);
        expect(receiving(schema).parse(other)).toEqual(other);
      }),
    );
  });

  test(`${name}: null where a field is optional reads as if it were absent`, () => {
    fc.assert(
      fc.property(valuesOf(schema), (value) => {
        const withNulls = nullifyOptional(schema, value);
        expect(receiving(schema).parse(withNulls)).toEqual(value);
      }),
    );
  });
}

test('no answer makes the reader throw, whatever JSON it is', () => {
  fc.assert(
    fc.property(anyJson, (value) => {
      for (const [, schema] of answers) expect(() => receiving(schema).safeParse(value)).not.toThrow();
    }),
  );
});

test('a required field stays required, and its type stays its type', () => {
  const { success, error } = receiving(RunsResponse).safeParse({
    page: 1,
    pageSize: 20,
    runs: [{ batchId: 3 }],
  });
  expect(success).toBe(false);
  expect(error?.issues.map(({ path }) => path.join('.')).sort()).toEqual([
    'runs.0.batchId',
    'runs.0.id',
    'total',
  ]);
});

test('a trajectory entry of a kind we do not know is kept, and a known kind must have its shape', () => {
  const run = (entry: object) => ({
    id: 'r',
    trials: [{ id: 't', ordinal: 0, status: 'odd', trajectory: [entry] }],
  });
  const thought = run({ _tag: 'thought', text: 'hm', at: 1 });
  expect(receiving(RunRecord).parse(thought)).toEqual(thought);
  expect(receiving(RunRecord).safeParse(run({ _tag: 'command' })).success).toBe(false);
  expect(receiving(RunRecord).safeParse(run({ text: 'no tag' })).success).toBe(false);
});

test('a credential of a kind we do not know is kept, and a known kind must have its shape', () => {
  const answer = (credential: object) => ({
    credential,
    organization: { id: 'o', name: 'O', slug: 'o' },
    permissions: [],
  });
  const sso = answer({ kind: 'sso', issuer: 'x' });
  expect(receiving(Whoami).parse(sso)).toEqual(sso);
  expect(receiving(Whoami).safeParse(answer({ kind: 'apiKey' })).success).toBe(false);
});

test('what a service sends cannot reach an object’s prototype', () => {
  const run = receiving(RunRecord).parse(JSON.parse('{"id": "r", "__proto__": {"local": true}}'));
  expect(Object.getPrototypeOf(run)).toBe(Object.prototype);
  expect(run.local).toBeUndefined();
});

test('sending stays strict: what receiving tolerates is refused in a request', () => {
  const { request } = operations['evals.runs.list'];
  expect(request.safeParse({ caseId: 'c' }).success).toBe(true);
  for (const bad of [
    { caseId: 'c', extra: 1 },
    { caseId: 'c', page: null },
    { caseId: 'c', page: 1.5 },
    {},
  ]) {
    expect(request.safeParse(bad).success).toBe(false);
  }
});
