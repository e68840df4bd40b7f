import { describe, expect, test } from 'vitest';
import { recordVersion, type TrialRecord } from '../../src/record/trial-record.ts';

import { findingOf } from '../../src/viewer/model/compare.ts';
import { cutMiddle, cutRecord, valueAt } from '../../src/viewer/model/cut-record.ts';
import { entryDetails } from '../../src/viewer/model/entry.ts';
import { explain } from '../../src/viewer/model/explain.ts';
import { fieldOf, parseFilter, withField } from '../../src/viewer/model/filter.ts';
import { gridOf, passRates } from '../../src/viewer/model/grid.ts';
import type { TrialRow } from '../../src/viewer/model/shapes.ts';

const trial: TrialRow = {
  key: 1,
  caseId: 'case_1',
  caseName: 'Fix add',
  variant: 'codex expert',
  ordinal: 0,
  attempts: 2,
  state: 'finished',
  verdict: 'failed',
  durationMs: 95_000,
  cause: { kind: 'agent', phase: 'harness', message: 'its time was up' },
  reason: 'verify: npm test exited 1',
  costUsd: 0.06,
  tokens: 12_000,
};

test('a batch of two variants that has ended says which is better', () => {
  const page = (unfinished: number, cases: number, ...variants: string[]) =>
    ({
      batch: { id: 'b', marks: [], unfinished, passed: cases, failed: 0, void: 0 },
      fingerprints: [],
      trials: [...Array(cases).keys()].flatMap((index) =>
        variants.map((variant) => ({
          ...trial,
          caseId: `case_${index}`,
          variant,
          verdict: variant === 'good' ? 'passed' : 'failed',
        })),
      ),
    }) as never;
  expect(findingOf(page(0, 10, 'bad', 'good'))).toMatch(
    /^good \(B\) compared with bad \(A\): B is better by 100 points \(\d+ to \d+\), over 10 cases\.$/,
  );
  expect(findingOf(page(1, 10, 'bad', 'good'))).toBeUndefined();
  expect(findingOf(page(0, 10, 'bad'))).toBeUndefined();
  expect(findingOf(page(0, 3, 'bad', 'good'))).toContain(
    'over 3 cases. With 3 cases and 1 trial of each, not even 0 % and 100 % can be told apart: at least',
  );
});

describe('a filter', () => {
  test.each([
    '',
    '   ',
    'add',
    'ADD expert',
    'npm',
    'case_1',
    'verdict:failed',
    'verdict:passed,failed',
    'state:finished',
    'cause:agent',
    'cause:harness',
    'case:fix',
    'case:"fix add"',
    'variant:"codex expert"',
    'duration:>90s',
    'duration:<2m',
    'duration:>=95',
    'cost:>0.05',
    'cost:<=$0.06',
    'tokens:>10k',
    'tokens:12000',
    '-verdict:void',
    '-nothing',
    '"npm test"',
    'verdict:failed cause:agent tokens:<13k',
  ])('%j lets the trial through', (text) => {
    expect(parseFilter(text).matches(trial)).toBe(true);
    expect(parseFilter(text).problems).toEqual([]);
  });

  test.each([
    'sub',
    'verdict:passed',
    'cause:model',
    'case:add-x',
    '-verdict:failed',
    'duration:>2m',
    'cost:>0.06',
    'tokens:<10k',
    '-npm',
    'add verdict:void',
    'unknown:field',
  ])('%j keeps the trial out', (text) => {
    expect(parseFilter(text).matches(trial)).toBe(false);
  });

  test('says what it does not understand, and applies the rest', () => {
    const { problems, matches } = parseFilter('duration:soon cost:>1eur verdict:failed');
    expect(problems).toEqual([
      'duration: expected a number such as >10, not soon',
      'cost: expected a number such as >10, not >1eur',
    ]);
    expect(matches(trial)).toBe(true);
  });

  test('that asks for a number keeps out trials without it', () => {
    expect(parseFilter('cost:<1').matches({ ...trial, costUsd: undefined })).toBe(false);
  });

  test('is changed field by field', () => {
    expect(withField('a verdict:failed b', 'verdict', 'void')).toBe('a b verdict:void');
    expect(withField('a case:"x y"  b', 'case', undefined)).toBe('a b');
    expect(withField('', 'variant', 'two words')).toBe('variant:"two words"');
    expect(fieldOf('a verdict:failed', 'verdict')).toBe('failed');
    expect(fieldOf('-verdict:failed', 'verdict')).toBe(undefined);
  });
});

test('a grid keeps the order of cases and variants, with holes where there is no trial', () => {
  const at = (caseId: string, variant: string, ordinal = 0) => ({ ...trial, caseId, variant, ordinal });
  const { variants, rows } = gridOf([at('b', 'w'), at('b', 'w', 1), at('b', 'v'), at('a', 'v')]);
  expect(variants).toEqual(['w', 'v']);
  expect(rows.map(({ caseId, cells }) => [caseId, ...cells.map((cell) => cell.length)])).toEqual([
    ['b', 2, 1],
    ['a', 0, 1],
  ]);
});

test('pass rates are by suite and time; void trials, replays and parts of a suite do not count', () => {
  const batch = (key: number, suite: string, startedAt: number, passed: number, failed: number) => ({
    key,
    id: `batch_${key}`,
    shortId: `${key}`,
    variants: [],
    isWhole: true,
    suite,
    service: 's',
    startedAt,
    passed,
    failed,
    void: 5,
    unfinished: 1,
    marks: [],
  });
  const partial = { ...batch(4, 'a', 40, 1, 0), isWhole: false };
  const whole = [batch(3, 'a', 30, 1, 1), batch(2, 'b', 20, 0, 0), batch(1, 'a', 10, 3, 1)];
  const rates = passRates([partial, ...whole]);
  expect(rates.map(({ suite, points }) => [suite, ...points.map(({ rate }) => rate)])).toEqual([
    ['a', 0.75, 0.5],
  ]);
});

test.each([
  ['a is missing', ['Error']],
  ['one more b', ['Message', 'Error']],
])('an entry says what a validation found once: %s', (message, labels) => {
  const error = { text: 'AssertionError: a is missing\n    at check.ts:3' };
  const validation = { id: 'v0', index: 0, name: 'has a', exitCode: 1, durationMs: 1, message, error };
  const record: TrialRecord = {
    version: recordVersion,
    verdict: 'failed',
    startedAt: 0,
    finishedAt: 1,
    phases: [],
    modelUnmeasured: false,
    validations: [{ ...validation, status: 'failed' }],
  };
  const { texts } = entryDetails(record, { kind: 'validation', index: 0, failed: true });
  expect(texts.map(({ label }) => label)).toEqual(labels);
});

describe('a cut record', () => {
  const record: TrialRecord = {
    version: recordVersion,
    verdict: 'passed',
    startedAt: 0,
    finishedAt: 1,
    phases: [],
    modelUnmeasured: false,
    events: Array.from({ length: 3_000 }, (_, index) => ({
      kind: 'tool' as const,
      at: index,
      name: 'write',
      input: { 'a/b~c': 'x'.repeat(5_000), list: [index] },
      output: `${index} ${'y'.repeat(20_000)} end`,
    })),
  };

  test('has a bounded size, and names what it lacks', () => {
    const { record: shown, cuts } = cutRecord(record);
    expect(JSON.stringify(shown).length).toBeLessThan(6_000_000);
    expect(Object.keys(cuts).length).toBe(6_000);
    expect(cuts['/events/7/output']).toBe(20_006);
    expect(valueAt(shown, '/events/7/output')).toMatch(/^7 y+\n… \d+ characters left out …\ny+ end$/);
    // The record itself stays whole.
    expect(valueAt(record, '/events/7/output')).toHaveLength(20_006);
  });

  test('a pointer leads to a value, whatever its name is, and never to a prototype', () => {
    expect(valueAt(record, '/events/7/input/a~1b~0c')).toHaveLength(5_000);
    expect(valueAt(record, '/events/constructor')).toBe(undefined);
    expect(valueAt(record, '/__proto__/toString')).toBe(undefined);
    expect(valueAt(record, 'events')).toBe(undefined);
  });

  test('no character is split where a text is cut', () => {
    const cut = cutMiddle('😀'.repeat(500), 101);
    expect(cut.isWellFormed()).toBe(true);
    expect(cutMiddle('short', 5)).toBe('short');
  });
});

describe('whose fault it is:', () => {
  const base = { startedAt: 0, finishedAt: 1, phases: [], modelUnmeasured: false };

  test.each([
    ['agent', true],
    ['task', false],
    ['harness', false],
    ['model', false],
    ['infrastructure', false],
    ['grading', false],
  ] as const)('the cause %s', (kind, isAgents) => {
    const cause = { kind, phase: 'harness' as const, message: 'it broke' };
    const { fault, reasons } = explain({ version: recordVersion, ...base, verdict: 'void', cause });
    expect(fault).toMatch(isAgents ? /This is the agent's fault/ : /This is not the agent's fault/);
    expect(reasons).toEqual(['harness: it broke']);
  });

  test('a failed check, and how the harness ended', () => {
    const { fault, reasons } = explain({
      version: recordVersion,
      ...base,
      verdict: 'failed',
      harness: { ended: 'timed-out', afterMs: 60_000 },
      verifySteps: [{ command: 'make', exitCode: 2, output: '', outputTruncated: false }],
    });
    expect(fault).toBe('The agent finished, and its work did not pass the checks.');
    expect(reasons).toEqual(['verify: make exited 2', 'harness: ended after 60 s: its time was up']);
  });

  test('nothing, for a trial that passed', () => {
    expect(explain({ version: recordVersion, ...base, verdict: 'passed' })).toEqual({
      reasons: [],
    });
  });
});
