import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { describe, expect, test } from 'vitest';
import { annotations, githubStep, writeGithubResults } from '../../../src/cli/output/github.ts';
import { ctrfJson, junitXml } from '../../../src/cli/output/junit.ts';
import type { BatchSummary, TrialSummary } from '../../../src/cli/output/summary.ts';
import { summaryTable } from '../../../src/cli/output/summary-table.ts';
import { conclusionOf } from '../../../src/cli/results/print-results.ts';
import { type Content, Output, plainText } from '../../../src/text/output.ts';
import { ours, stack } from '../../../src/text/printable.ts';

const trial = (ordinal: number, change: Partial<TrialSummary>): TrialSummary => ({
  ordinal,
  verdict: 'passed',
  reported: true,
  durationMs: 1_500,
  commands: 2,
  tokens: 10,
  costUsd: 0.01,
  otherCostUsd: 0,
  failures: [],
  failuresCount: 0,
  failuresTruncated: false,
  filesChanged: [],
  filesChangedCount: 0,
  filesChangedTruncated: false,
  ...change,
});

function batch(trials: TrialSummary[]): BatchSummary {
  const of = (verdict: string) => trials.filter((each) => each.verdict === verdict).length;
  const counts = { passed: of('passed'), failed: of('failed'), void: of('void'), passRate: 0.5 };
  const sums = { durationMs: 4_500, tokens: 30, costUsd: 0.03, otherCostUsd: 0 };
  return {
    batchId: 'b1',
    service: 's',
    unreported: 0,
    ...counts,
    ...sums,
    runs: [
      {
        id: 'r1',
        case: 'hello',
        variant: 'codex, fast: "mine"',
        model: 'm',
        commands: 6,
        notRun: 0,
        harnessVersion: undefined,
        trials,
        ...counts,
        ...sums,
      },
    ],
  };
}

const hostile = '\u001b[31mred\u001b[0m <b>&"\'\u0000\u0007\n::error::forged\ud800';
const mixed = batch([
  trial(0, {}),
  trial(1, { verdict: 'failed', failures: [`verify: test -f x (exit 1) ${hostile}`, 'validation "a": no'] }),
  trial(2, { verdict: 'void', cause: { kind: 'infrastructure', phase: 'sandbox', message: 'no engine' } }),
]);

const unpriced = batch([trial(0, {}), trial(1, {}), trial(2, { verdict: 'void', costUsd: undefined })]);

test('a trial whose cost is not known does not hide that of the others', () => {
  expect(plainText(summaryTable(unpriced))).toMatch(/^all .* 30 +≥ \$0\.0200$/m);
  const judged = batch([trial(0, { costUsd: undefined, otherCostUsd: 0.02 })]);
  expect(plainText(summaryTable(judged))).toMatch(/^all .* 10 +– +\$0\.0200$/m);
  expect(plainText(summaryTable(batch([trial(0, {})])))).toMatch(/^all .* 10 +\$0\.0100$/m);
});

describe('JUnit XML of a batch', () => {
  test('is well-formed, with a test case for each trial and void trials as errors', () => {
    const xml = junitXml(mixed);
    expect(XMLValidator.validate(xml)).toBe(true);
    const { testsuites } = new XMLParser({ ignoreAttributes: false, attributeNamePrefix: '' }).parse(xml);
    expect(testsuites).toMatchObject({
      name: 'batch b1',
      tests: '3',
      failures: '1',
      errors: '1',
      time: '4.500',
    });
    expect(testsuites.testsuite).toMatchObject({ name: 'hello · codex, fast: "mine"', tests: '3' });
    const [passed, failed, voided] = testsuites.testsuite.testcase;
    expect(passed).toEqual({ classname: 'hello.codex, fast: "mine"', name: 'trial 0', time: '1.500' });
    expect(failed.failure.message).toBe(
      'verify: test -f x (exit 1) \\u{1b}[31mred\\u{1b}[0m <b>&"\'\\u{0}\\u{7}',
    );
    expect(failed.failure['#text']).toContain('validation "a": no');
    expect(voided.error).toMatchObject({
      message: 'infrastructure, in sandbox: no engine',
      type: 'infrastructure',
    });
  });

  test('says so where every trial passed', () => {
    expect(junitXml(batch([trial(0, {})]))).not.toMatch(/<(failure|error)/);
  });
});

test('CTRF has a test for each trial: void ones are `other`, those without a result are skipped', () => {
  const [run] = mixed.runs;
  if (!run) throw new Error('there is a run');
  const unfinished = [{ ordinal: 3, why: 'interrupted' }];
  const incomplete = { ...mixed, startedAt: 1_000.4, finishedAt: 9_000, runs: [{ ...run, unfinished }] };
  const { results, ...document } = JSON.parse(ctrfJson(incomplete, { now: 10_000 }));
  expect(document).toMatchObject({
    reportFormat: 'CTRF',
    timestamp: '1970-01-01T00:00:10.000Z',
    runId: 'b1',
  });
  expect(results.summary).toEqual({
    tests: 4,
    passed: 1,
    failed: 1,
    skipped: 1,
    pending: 0,
    other: 1,
    start: 1_000,
    stop: 9_000,
  });
  expect(results.tests).toMatchObject([
    { name: 'hello · codex, fast: "mine" #0', status: 'passed', duration: 1_500 },
    { status: 'failed', trace: expect.stringContaining('validation "a": no') },
    { status: 'other', rawStatus: 'void', message: 'infrastructure, in sandbox: no engine' },
    { name: 'hello · codex, fast: "mine" #3', status: 'skipped', message: 'interrupted' },
  ]);
  expect(JSON.stringify(results)).not.toMatch(/\\u001b|\\u0007/);
});

test('what was not run because the command failed is an error, since CI systems overlook what is skipped', () => {
  const [run] = mixed.runs;
  const why = 'did not begin: the engine is gone';
  const ended = (kind: 'failed' | 'interrupted') => ({
    ...mixed,
    incomplete: { kind, why, unfinished: 1 },
    runs: run ? [{ ...run, trials: [], unfinished: [{ ordinal: 0, why }] }] : [],
  });
  expect(junitXml(ended('failed'))).toContain(`<error message="${why}" type="unfinished"/>`);
  expect(ctrfJson(ended('failed'), { now: 0 })).toContain('"status": "other"');
  expect(junitXml(ended('interrupted'))).toContain(`<skipped message="${why}"/>`);
});

test('a gate does not judge trials of two models as one, whether it would pass or fail', () => {
  const by = (caseId: string, modelAddress: string, harness = 'codex 1') => [
    { caseId, variant: 'v', parts: { modelAddress, harness } },
  ];
  const concluded = (known: ReturnType<typeof by>, failUnder?: number) => {
    const results = { summary: batch([trial(0, {}), trial(1, { verdict: 'failed' })]) };
    const { code, why, lines } = conclusionOf(results, undefined, { failUnder }, known);
    return { code, why: why.map((line) => plainText(line)), lines: lines.map((line) => plainText(line)) };
  };
  const mixed = 'not all trials of v had the same address or script of the model';
  const unjudged = `${mixed}, so they are not judged as one: the exit code is 3; run the suite again`;
  const two = [...by('a', 'here'), ...by('b', 'there')];
  expect(concluded(two, 0.5)).toMatchObject({
    code: 3,
    why: [unjudged],
    lines: [expect.anything(), unjudged],
  });
  expect(concluded(two, 0.8)).toMatchObject({ code: 3, why: [expect.anything(), unjudged] });
  expect(concluded(two)).toEqual({ code: 0, why: [], lines: [mixed] });
  // What an image brought is no other checkout.
  const images = [...by('a', 'here'), ...by('a', 'here', 'codex 2')];
  expect(concluded(images, 0.5)).toMatchObject({ code: 0, why: [] });
  expect(concluded(images, 0.5).lines).toContain('not all trials of v had the same harness');
});

describe('in GitHub Actions', () => {
  test('each run with trials that did not pass gets one annotation, and no output of a sandbox becomes one', () => {
    const lines: string[] = [];
    const output = new Output({ write: (line) => lines.push(line) });
    for (const annotation of annotations(mixed, undefined)) output.annotation(annotation);
    expect(lines).toHaveLength(2);
    for (const line of lines) expect(line.slice(0, -1)).not.toMatch(/\p{Cc}/u);
    expect(lines[0]).toMatch(
      /^::error title=hello · codex%2C fast%3A "mine"::1 of 3 trials failed%0A#1: verify/,
    );
    expect(lines[1]).toMatch(/^::warning .*::1 of 3 trials void%0A#2: no engine\n$/);
    const known = annotations(mixed, ({ case: id }) => id === 'hello');
    expect(known.map(({ kind }) => kind)).toEqual(['notice', 'warning']);
  });

  test('why the job fails comes before all others, since GitHub shows ten', () => {
    const lines: string[] = [];
    const means = {
      output: new Output({ write: (line) => lines.push(line) }),
      warn: () => undefined,
      redact: (plain: string) => plain,
    };
    const step = { summaryFile: undefined };
    const concluded = [ours('no regression of a variant')];
    const why = [ours('the pass rate of 50 % is below 80 % (--fail-under)')];
    writeGithubResults(step, { summary: mixed, concluded, code: 1, why }, means);
    expect(lines[0]).toBe(
      '::error title=Offsite%3A exit code 1::the pass rate of 50 %25 is below 80 %25 (--fail-under)\n',
    );
    expect(lines).toHaveLength(3);
    writeGithubResults(step, { summary: { ...batch([]), unreported: 2 }, concluded: [], code: 3 }, means);
    expect(lines[3]).toBe('::error title=Offsite%3A exit code 3::the service does not show 2 results yet\n');
    writeGithubResults(step, { summary: batch([]), concluded, code: 0 }, means);
    expect(lines).toHaveLength(4);
  });

  test.each([
    ['embedded', '2 results kept in the data folder of the runner: `offsite resume` continues.'],
    ['http://h', '2 results kept in the data folder of the runner wait to be reported to <code>http'],
  ])('with the service %s the step summary says where results are that it does not show', (service, said) => {
    const folder = mkdtempSync(join(tmpdir(), 'offsite-github-'));
    const summaryFile = join(folder, 'summary.md');
    const output = new Output({ write: () => undefined });
    const means = { output, warn: () => undefined, redact: (plain: string) => plain };
    const summary = { ...batch([trial(0, {})]), service, unreported: 2 };
    writeGithubResults({ summaryFile }, { summary, concluded: [] }, means);
    expect(readFileSync(summaryFile, 'utf8')).toContain(said);
    rmSync(folder, { recursive: true });
  });

  test('the step summary is added to what is there, and one that cannot be written is only said', () => {
    const folder = mkdtempSync(join(tmpdir(), 'offsite-github-'));
    try {
      const file = join(folder, 'summary.md');
      const warnings: string[] = [];
      const printers = {
        output: new Output({ write: () => undefined }),
        warn: (message: Content) => warnings.push(plainText(message)),
        redact: (text: string) => text,
      };
      const step = githubStep({ GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: file });
      if (!step) throw new Error('not taken for a step');
      const two = stack([ours('one of them'), ours('the other')]);
      const concluded = [ours('the pass rate of 50 % is below 80 % (--fail-under)'), two];
      writeGithubResults(step, { summary: mixed, concluded }, printers);
      writeGithubResults(step, { summary: mixed, concluded: [] }, printers);
      const text = readFileSync(file, 'utf8');
      expect(text.match(/^### Offsite: batch <code>b1<\/code>$/gm)).toHaveLength(2);
      expect(text).toContain(
        '| <code>hello</code> · <code>codex, fast&#58; &#34;mine&#34;</code> | 1 | 1 | 1 | 50 % | 4.5 s | $0.0300 |',
      );
      expect(text).toContain('| did not pass | why, in the first such trial |');
      writeGithubResults(step, { summary: unpriced, concluded: [] }, printers);
      expect(readFileSync(file, 'utf8')).toMatch(/^\| all \| .* \| ≥ \$0\.0200 \|$/m);
      expect(text).toMatch(/^\| <code>hello<\/code> · .* \| <code>verify&#58;.*<br><code>validation .*\|$/m);
      expect(text.match(/^<code>the pass rate of 50 &#37; is below 80 &#37; .*$/gm), text).toHaveLength(1);
      expect(text).toContain('<code>one of them</code><br><code>the other</code>\n');
      writeGithubResults(
        { summaryFile: join(folder, 'none', 'x') },
        { summary: mixed, concluded: [] },
        printers,
      );
      expect(warnings).toEqual([expect.stringContaining('cannot write the step summary')]);
      expect(githubStep({})).toBeUndefined();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
