import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { failAttempt, fillBatch, finishTrial } from './filled-ledger.ts';
import { type OpenedViewer, openedViewer } from './opened-viewer.ts';
import { story } from './story.ts';

let opened: OpenedViewer;
let batch: number;
let other: number;
/** The trials of the batch: fix-add a #0, #1, b #0, #1, then the same of ini-proto. */
let trials: number[];
beforeAll(async () => {
  opened = await openedViewer();
  const { ledger } = opened;
  const found = await story(ledger);
  other = await fillBatch(ledger, {
    id: 'batch_first',
    suite: 'quickstart',
    cases: ['fix-add', 'ini-proto'],
    variants: ['a'],
    found: () => ({ ...found, verdict: 'passed', verifySteps: [], validations: [], judgments: [] }),
  });
  batch = await fillBatch(ledger, {
    id: 'batch_second',
    suite: 'quickstart',
    cases: ['fix-add', 'ini-proto'],
    variants: ['a', 'b'],
    repeats: 2,
    found: (caseName, variant, ordinal) => {
      if (caseName === 'fix-add' && variant === 'a' && ordinal === 0) return found;
      if (variant === 'a')
        return { ...found, verdict: 'passed', verifySteps: [], validations: [], judgments: [] };
      if (ordinal === 1) return undefined;
      return {
        verdict: 'void',
        cause: { kind: 'infrastructure', phase: 'sandbox', message: 'no space left', output: 'disk full\n' },
      };
    },
  });
  trials = ledger.queue.ofBatch(batch).map(({ key }) => key);
});
afterAll(() => opened[Symbol.asyncDispose]());

const at = (index: number) => trials[index] ?? 0;

describe('batches', () => {
  test('are listed with their verdicts, and a click opens one', async () => {
    const page = await opened.open('/');
    const rows = page.getByRole('table', { name: 'Batches' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(3);
    const cells = rows.nth(1).getByRole('cell');
    expect((await cells.allTextContents()).slice(1, 3)).toEqual(['quickstart a, b', 'second ']);
    expect(await cells.nth(2).getAttribute('title')).toBe('batch_second');
    expect(await rows.nth(1).getByRole('img').getAttribute('aria-label')).toBe(
      '3 passed, 1 failed, 2 void, 2 unfinished',
    );
    await rows.nth(1).getByRole('link').click();
    await page.getByRole('heading', { name: 'quickstart' }).waitFor();
    expect(page.url()).toContain(`#/batch/${batch}`);
    opened.calm();
  });

  test('are filtered, moved through and opened with keys', async () => {
    const page = await opened.open('/');
    await page.keyboard.press('/');
    await page.keyboard.type('batch_first');
    await page.getByTitle('batch_second').waitFor({ state: 'detached' });
    expect(page.url()).toContain('q=batch_first');
    await page.keyboard.press('Escape');
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByText('started').waitFor();
    expect(page.url()).toContain(`#/batch/${other}`);
    opened.calm();
  });
});

describe('a batch', () => {
  test('shows cases and variants, with repeats in one cell', async () => {
    const page = await opened.open(`/batch/${batch}`);
    const rows = page.getByRole('table', { name: 'Cases and variants' }).getByRole('row');
    await rows.nth(2).waitFor();
    expect(await rows.nth(0).getByRole('columnheader').allTextContents()).toEqual(['Case', 'a', 'b']);
    expect(await rows.nth(1).getByRole('link').allTextContents()).toEqual(['✗', '✓', '○', '·']);
    expect(await rows.nth(1).textContent()).toContain('infrastructure: no space left');
    await page.getByText(/^95 % interval \d+ to \d+ %$/).waitFor();
    await page
      .getByRole('link', {
        name: 'fix-add · a #0: failed: verify: npm test exited 1: adds: AssertionError [ERR_ASSERTION]: 4 !== 3',
      })
      .waitFor();
    opened.calm();
  });

  test('is filtered by words, verdict and cause, and the address keeps it', async () => {
    const page = await opened.open(`/batch/${batch}?view=list&q=cause:infrastructure`);
    const rows = page.getByRole('table', { name: 'Trials' }).getByRole('row');
    await expect.poll(() => rows.count()).toBe(3);
    await page.keyboard.press('/');
    await page.keyboard.type('verdict:failed nothing-like-it');
    await page.getByText('No trial matches').waitFor();
    await page.getByRole('searchbox').fill('verdict:failed assertion');
    await expect.poll(() => rows.count()).toBe(2);
    await page.reload();
    await expect.poll(() => rows.count()).toBe(2);
    await page.getByRole('searchbox').fill('duration:long');
    await page.getByText('duration: expected a number').waitFor();
    opened.calm();
  });

  test('is moved through with keys: next failed, open, back', async () => {
    const page = await opened.open(`/batch/${batch}`);
    await page.getByRole('link', { name: 'fix-add · a #0' }).waitFor();
    await page.keyboard.press('n');
    await expect.poll(() => page.url()).toContain(`at=${at(0)}`);
    await page.keyboard.press('n');
    await expect.poll(() => page.url()).toContain(`at=${at(2)}`);
    await page.keyboard.press('k');
    await expect.poll(() => page.url()).toContain(`at=${at(1)}`);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'fix-add · a #1' }).waitFor();
    await page.keyboard.press('u');
    await page.getByRole('table', { name: 'Cases and variants' }).waitFor();
    expect(page.url()).toContain(`at=${at(1)}`);
    opened.calm();
  });

  test('changes while trials end', async () => {
    const page = await opened.open(`/batch/${batch}`);
    await page.getByText('live').waitFor();
    await page.getByRole('link', { name: 'ini-proto · b #1: queued' }).waitFor();
    const key = opened.ledger.queue.ofBatch(batch).at(-1)?.key ?? 0;
    await finishTrial(opened.ledger, key, { verdict: 'passed' });
    await page.getByRole('link', { name: 'ini-proto · b #1: passed' }).waitFor();
    opened.calm();
  });
});

describe('a trial', () => {
  test('says why it failed, whose fault it is, and shows the output, without scrolling', async () => {
    const page = await opened.open(`/trial/${at(0)}`);
    const why = page.getByRole('region', { name: 'Verdict' });
    await why.waitFor();
    const text = (await why.textContent()) ?? '';
    for (const part of [
      'failed',
      'The agent finished, and its work did not pass',
      'npm test exited 1',
      '0.4 < 0.7',
    ])
      expect(text).toContain(part);
    expect(text).toContain('AssertionError [ERR_ASSERTION]: 4 !== 3');
    const box = await why.boundingBox();
    expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThan(800);
    opened.calm();
  });

  test("says that a void trial is not the agent's fault", async () => {
    const page = await opened.open(`/trial/${at(2)}`);
    const why = page.getByRole('region', { name: 'Verdict' });
    await why.waitFor();
    expect(await why.textContent()).toContain("This is not the agent's fault.");
    expect(await why.textContent()).toContain('disk full');
    opened.calm();
  });

  test('has one axis of time, whose entries show their details', async () => {
    const page = await opened.open(`/trial/${at(0)}`);
    const list = page.getByRole('listbox', { name: 'Timeline' });
    const panel = page.getByRole('region', { name: 'Selected entry' });
    await list.waitFor();
    expect(await panel.textContent()).toContain('verify');
    await page.keyboard.press('Home');
    await expect.poll(() => page.url()).toContain('sel=phase.0');
    await list.getByRole('option').filter({ hasText: 'read_file' }).click();
    await expect.poll(() => panel.textContent()).toContain('"path": "math.js"');
    await page.keyboard.press('ArrowDown');
    await expect.poll(() => panel.textContent()).toContain('Please also run the tests.');
    await page.keyboard.press('/');
    await page.keyboard.type('large-1');
    await expect.poll(() => list.getByRole('option').count()).toBe(3);
    await list.getByRole('option').first().click();
    await expect.poll(() => panel.textContent()).toContain('1.2k tokens');
    await expect.poll(() => panel.textContent()).toContain('"content": "Fix add."');
    opened.calm();
  });

  test('leads to its neighbours with keys and buttons, within the filter', async () => {
    const page = await opened.open(`/trial/${at(0)}`);
    const heading = page.getByRole('heading', { level: 1 });
    await page.getByRole('link', { name: 'Next failed' }).waitFor();
    await page.keyboard.press('n');
    await expect.poll(() => heading.textContent()).toBe('fix-add · b #0');
    await page.keyboard.press('k');
    await expect.poll(() => heading.textContent()).toBe('fix-add · a #1');
    await page.getByRole('link', { name: 'Previous' }).click();
    await expect.poll(() => heading.textContent()).toBe('fix-add · a #0');
    await expect.poll(() => page.evaluate('document.activeElement.tagName')).toBe('H1');
    await page.evaluate(`location.hash = '/trial/${at(0)}?q=verdict:passed,failed'`);
    const next = page.getByRole('link', { name: 'Next', exact: true });
    await expect.poll(() => next.getAttribute('href')).toContain('q=verdict');
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    await expect.poll(() => heading.textContent()).toBe('ini-proto · a #0');
    await page.keyboard.press('l');
    await expect.poll(() => page.url()).toContain('tab=changes');
    expect(page.url()).toContain('q=verdict');
    opened.calm();
  });

  test('shows changes, checks, artifacts, environment, attempts and the raw record', async () => {
    const page = await opened.open(`/trial/${at(0)}`);
    const content = page.getByRole('tabpanel');
    const tab = (name: string) => page.getByRole('tab', { name }).click();
    await tab('Changes');
    await expect.poll(() => content.textContent()).toContain('return a + b + 1;');
    expect(await content.locator('mark').allTextContents()).toEqual(['- b', '+ b + 1']);
    await expect.poll(() => content.textContent()).toContain('It is not text');
    expect(await content.getByText('node_modules/.cache/build.bin').count()).toBe(0);
    await content.getByText('and 1 file in caches of tools').click();
    await content.getByText('node_modules/.cache/build.bin').waitFor();
    await tab('Checks');
    await expect.poll(() => content.textContent()).toContain('add(1, 2) is 4');
    expect(await content.textContent()).toContain('It adds one for no reason.');
    await tab('Artifacts');
    await content.getByText('out/report.txt').click();
    await content.getByText('All is well.').waitFor();
    await content.getByText('out/logo.png').click();
    await content.getByRole('img', { name: 'out/logo.png' }).waitFor();
    await expect.poll(() => page.evaluate("document.querySelector('details img')?.naturalWidth")).toBe(1);
    await tab('Environment');
    await content.getByText('npm install -g @openai/codex').click();
    await content.getByText('added 12 packages').waitFor();
    await tab('Raw');
    await content.getByText('judgments').click();
    await content.getByText('"judge-1"').waitFor();
    opened.calm();
  });

  test('that is tried again shows what each attempt found', async () => {
    const { ledger } = opened;
    const key = await fillBatch(ledger, {
      id: 'batch_retried',
      cases: ['c'],
      variants: ['v'],
      found: () => undefined,
    });
    const trial = ledger.queue.ofBatch(key)[0]?.key ?? 0;
    await failAttempt(ledger, trial, { kind: 'model', phase: 'harness', message: 'overloaded' });
    const page = await opened.open(`/trial/${trial}`);
    await page.getByText('harness: overloaded').waitFor();
    await finishTrial(ledger, trial, { verdict: 'passed' });
    await page.getByRole('region', { name: 'Verdict' }).getByText('passed').waitFor();
    await page.getByRole('tab', { name: 'Attempts' }).click();
    await page.getByRole('link', { name: 'Show what it found' }).click();
    await page.getByText('This is what attempt 1 of 2 found.').waitFor();
    await page.getByText("The model or its provider failed. This is not the agent's fault.").waitFor();
    opened.calm();
  });
});

test('help lists the keys of the page, and single keys can be turned off', async () => {
  const page = await opened.open(`/batch/${batch}`);
  await page.getByRole('table').waitFor();
  await page.keyboard.press('?');
  const help = page.getByRole('dialog');
  expect(await help.textContent()).toContain('Next trial that failed');
  await help.getByRole('checkbox').uncheck();
  await page.keyboard.press('Escape');
  await help.waitFor({ state: 'detached' });
  await page.keyboard.press('?');
  await expect.poll(() => help.count()).toBe(0);
  opened.calm();
});

test('the token is not in the address bar, and without it no page has data', async () => {
  const page = await opened.open('/');
  await page.getByRole('table', { name: 'Batches' }).waitFor();
  expect(page.url()).not.toContain('token');
  const other = await (await page.context().browser()?.newContext())?.newPage();
  await other?.goto(new URL('/', opened.viewer.url).href);
  await other?.getByText('Open the address that').waitFor();
});

test('a link opened in a new tab has access too; another browser has not', async () => {
  const page = await opened.open('/');
  const link = page.getByRole('table', { name: 'Batches' }).getByRole('link').first();
  const [tab] = await Promise.all([
    page.context().waitForEvent('page'),
    link.click({ modifiers: ['ControlOrMeta'] }),
  ]);
  await tab.getByRole('link', { name: 'Batches' }).waitFor();
  opened.calm();
});

test('no page is wider than a phone', async () => {
  const places = [
    '/',
    `/batch/${batch}`,
    `/batch/${batch}?view=list`,
    `/compare?left=${other}&right=${batch}`,
  ];
  const tabs = ['timeline', 'changes', 'checks', 'task', 'artifacts', 'environment', 'attempts', 'raw'];
  const page = await opened.open('/', { width: 360, height: 740 });
  for (const place of [...places, ...tabs.map((tab) => `/trial/${at(0)}?tab=${tab}`)]) {
    await page.evaluate(`location.hash = ${JSON.stringify(place)}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await expect.poll(() => page.getByText('Loading …').count()).toBe(0);
    const wide = "['html', 'body', 'main'].map((name) => document.querySelector(name).scrollWidth)";
    expect([place, ...((await page.evaluate(wide)) as number[])]).toEqual([place, 360, 360, 360]);
  }
});

test('a phone shows all facts of a batch, and the whole names of its cases', async () => {
  // What a batch used is known to the list once its page has read the records.
  const page = await opened.open(`/batch/${other}`, { width: 390, height: 844 });
  await page.getByText('Tokens').waitFor();
  await page.evaluate("location.hash = '/'");
  const row = page.getByRole('row').filter({ has: page.getByTitle('batch_first', { exact: true }) });
  await row.waitFor();
  const cut = `[...document.querySelectorAll('.virtual .row *')]
    .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth).map(({ className }) => className)`;
  const shown = (await row.innerText()).split(/\s*\n\s*/).join(' · ');
  for (const fact of ['quickstart · a · first', '✓ 2', '100 %', '12.5k', '$0.0738', 'about', '202'])
    expect(shown).toContain(fact);
  expect(await page.evaluate(cut)).toEqual([]);
  await page.evaluate(`location.hash = '/batch/${batch}'`);
  await page.getByRole('rowheader', { name: 'ini-proto' }).waitFor();
  expect(await page.evaluate(cut)).toEqual([]);
  opened.calm();
});

test("the theme is the browser's", async () => {
  const backIn = async (colorScheme: 'dark' | 'light') => {
    const page = await opened.open('/', { colorScheme });
    return page.evaluate('getComputedStyle(document.body).backgroundColor');
  };
  expect(await backIn('dark')).not.toBe(await backIn('light'));
  opened.calm();
});
