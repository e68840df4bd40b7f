import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compareBatches } from '../../src/comparison/comparison.ts';
import { readReference } from '../../src/comparison/side.ts';
import { compareTrials as compareSides } from '../../src/viewer/model/compare.ts';
import type { TrialRow } from '../../src/viewer/model/shapes.ts';
import { fillBatch } from './filled-ledger.ts';
import { type OpenedViewer, openedViewer } from './opened-viewer.ts';
import { story } from './story.ts';

let key = 0;
const trials = (caseId: string, verdicts: string, tokens?: number): TrialRow[] =>
  [...verdicts].map((letter, ordinal) => {
    const verdict = ({ p: 'passed', f: 'failed', v: 'void' } as const)[letter];
    return {
      key: ++key,
      caseId,
      caseName: caseId,
      variant: 'v',
      ordinal,
      attempts: 1,
      state: verdict ? 'finished' : 'queued',
      verdict,
      tokens,
    };
  });

const sideOf = (all: TrialRow[]) => {
  return { batch: { id: 'batch', marks: [] } as never, variant: 'v', fingerprints: [], trials: all };
};
const compareTrials = (a: TrialRow[], b: TrialRow[]) => compareSides(sideOf(a), sideOf(b));

test('flips come first, then smaller changes, then what cannot be compared', () => {
  const a = [
    ...trials('same', 'pf'),
    ...trials('gone', 'p'),
    ...trials('worse', 'ppp'),
    ...trials('fixed', 'ff'),
    ...trials('regressed', 'pp'),
    ...trials('nothing', 'v'),
  ];
  const b = [
    ...trials('same', 'fp'),
    ...trials('worse', 'ppf'),
    ...trials('fixed', 'pp'),
    ...trials('regressed', 'fvf'),
    ...trials('nothing', 'v'),
    ...trials('new', 'p'),
  ];
  const { cases } = compareTrials(a, b);
  expect(cases.map(({ caseId, change }) => `${caseId}: ${change}`)).toEqual([
    'regressed: regressed',
    'fixed: fixed',
    'worse: worse',
    'gone: only-a',
    'new: only-b',
    'same: same',
    'nothing: unscored',
  ]);
});

test('differences of numbers leave out void trials and what was not measured', () => {
  const a = [...trials('c', 'p', 100), ...trials('c', 'v', 9_000), ...trials('d', 'p')];
  const b = [...trials('c', 'p', 250), ...trials('d', 'p', 3)];
  const { cases, measures } = compareTrials(a, b);
  expect(cases.find(({ caseId }) => caseId === 'c')?.deltas).toEqual({ tokens: 150 });
  expect(cases.find(({ caseId }) => caseId === 'd')?.deltas).toEqual({});
  expect(measures.tokens).toMatchObject({ cases: 1, meanDifference: 150 });
});

describe('the page', () => {
  let opened: OpenedViewer;
  let keys: number[];
  const cases = [
    'one',
    'two',
    'three',
    'four',
    'five',
    'six',
    'seven',
    'eight',
    'nine',
    'ten',
    'eleven',
    'twelve',
  ];
  beforeAll(async () => {
    opened = await openedViewer();
    const found = await story(opened.ledger);
    const batch = (id: string, isWorse: boolean) =>
      fillBatch(opened.ledger, {
        id,
        cases,
        variants: ['v'],
        repeats: 2,
        found: (caseName) =>
          caseName !== 'one' && (isWorse || caseName === 'two')
            ? found
            : { ...found, verdict: 'passed', verifySteps: [], validations: [], judgments: [] },
      });
    keys = [await batch('batch_good', false), await batch('batch_bad', true)];
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  const place = (more = '') => `/compare?left=${keys[0]}&right=${keys[1]}${more}`;

  test('says the same as `offsite compare`', async () => {
    const { ledger } = opened;
    const [said] = compareBatches(
      ledger,
      readReference(ledger, 'batch_good'),
      readReference(ledger, 'batch_bad'),
    ).comparisons;
    expect(said?.difference.finding).toBe('worse');
    const points = (value = 0) => String(Number((value * 100).toFixed(Math.abs(value) < 0.1 ? 1 : 0)));
    const page = await opened.open(place());
    const finding = page.getByRole('region', { name: 'Finding' });
    const { value = 0, low = 0, high = 0 } = said?.difference ?? {};
    await finding
      .getByText(
        `B is worse by ${points(-value)} points (${points(-high)} to ${points(-low)}), over 12 cases.`,
      )
      .waitFor();
    opened.calm();
  });

  test('lists flips first, is moved through with keys, and shows both transcripts of a case', async () => {
    const page = await opened.open(place());
    const rows = page.getByRole('table', { name: 'Cases', exact: true }).getByRole('row');
    await rows.nth(1).getByText('regressed').waitFor();
    await page.keyboard.press('n');
    await page.keyboard.press('Enter');
    const [left, right] = ['A', 'B'].map((name) =>
      page.getByRole('region', { name: `Transcript of ${name}` }),
    );
    await left?.getByText('passed').first().waitFor();
    await right?.getByText('verify: npm test exited 1').waitFor();
    await right?.getByRole('option').filter({ hasText: 'sed -i' }).click();
    await right?.getByRole('region', { name: 'Selected entry' }).getByText('sed -i').first().waitFor();
    expect(page.url()).toMatch(/case=three.*rightSel=command\.2/);
    await page.getByRole('button', { name: 'All cases' }).click();
    await rows.nth(1).waitFor();
    await page.getByRole('link', { name: 'Swap A and B' }).click();
    await page.getByRole('region', { name: 'Finding' }).getByText('B is better by').waitFor();
    opened.calm();
  });

  test('is reached by marking two batches', async () => {
    const page = await opened.open('/');
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await page.keyboard.press('c');
    await page.getByRole('region', { name: 'Finding' }).waitFor();
    expect(page.url()).toContain(`left=${keys[0]}&right=${keys[1]}`);
    opened.calm();
  });

  test('shows no rates of cases that ask or check something else on the two sides', async () => {
    const [before, after] = await Promise.all(
      ['1', '2'].map((validator) =>
        fillBatch(opened.ledger, {
          id: `batch_of_check_${validator}`,
          cases: ['one'],
          variants: ['v'],
          found: () => ({ verdict: 'passed', fingerprint: { prompt: '1', validator } }),
        }),
      ),
    );
    const page = await opened.open(`/compare?left=${before}&right=${after}`);
    await page.getByText('Not compared, since not all trials ask and check the same').waitFor();
    const row = page.getByRole('region', { name: 'Means' }).getByRole('row', { name: 'Pass rate' });
    expect(await row.getByRole('cell').allTextContents()).toEqual(['–', '–', '–', '–']);
    opened.calm();
  });
});
