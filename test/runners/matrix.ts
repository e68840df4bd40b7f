import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { runners } from '../../runners/index.ts';
import { hostCertificates } from '../../src/api/host-certificates.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { commandsOf } from '../../src/record/timeline.ts';
import { ModelConfig, type Wire, wires } from '../../src/suite/model-config.ts';
import { type Profile, profileOf } from '../../src/suite/plan.ts';
import { openTrialBench, type TrialBench, timeouts } from '../trial/trial-bench.ts';
import { installPatience, turnPatience } from './runner-bench.ts';

/** Two turns: parallel calls, and a call that needs what they left. */
const script = {
  turns: [
    {
      text: 'I make two files.',
      run: ['echo one > one.txt', 'echo two > two.txt'],
      usage: { input: 1000, output: 50, cacheRead: 400 },
    },
    { run: 'paste -d+ one.txt two.txt', usage: { input: 1200, output: 20, cacheRead: 1000 } },
    {
      // One line, which stays as it is where a harness gives results as JSON.
      when: { result: 'one+two' },
      text: 'Both are there.',
      usage: { input: 1300, output: 10, cacheRead: 1200 },
    },
    {
      // aider offers its model no tools: it reads edits from its answers.
      when: { tools: false, system: 'expert software developer' },
      text: 'Both are there.\n\none.txt\n```\none\n```\n\ntwo.txt\n```\ntwo\n```',
      usage: { input: 3500, output: 80, cacheRead: 2600 },
    },
  ],
  otherwise: 'A rehearsal',
};

const page = new URL('../../docs/reference/harnesses.md', import.meta.url);
const [from, to] = ['<!-- begin matrix -->\n', '<!-- end matrix -->'];

interface Harness {
  name: string;
  wires: Runner['wires'];
  profile: Profile;
}

/** Gemini CLI over the protocol, with the profile that the page shows. */
const acp: Harness = {
  name: 'acp',
  wires: ['gemini'],
  profile: profileOf({ name: 'gemini-acp', ...documentedProfile('gemini-acp') }),
};
const drivers = runners.filter(({ wires: known }) => known === 'any' || known.length > 0);
const plain = profileOf({ name: 'plain' });
const harnesses: Harness[] = [
  acp,
  ...drivers.map(({ name, wires: known }) => ({ name, wires: known, profile: plain })),
];

function documentedProfile(name: string): { install: string; run: string } {
  const guide = new URL('../../docs/runners.md', import.meta.url);
  const blocks = readFileSync(guide, 'utf8').matchAll(/```yaml\n([\s\S]*?)```/g);
  const profiles = [...blocks].flatMap(([, text = '']) => parse(text).profiles?.[name] ?? []);
  expect(profiles).toHaveLength(1);
  return profiles[0];
}

// The first run of a harness on a machine installs it.
const timeout = installPatience + turnPatience;

/**
 * Runs each harness with a model of each of these wires. A file of tests has some of the wires, so that two
 * run at a time.
 */
export function matrix(asked: readonly Wire[]): void {
  const cells = harnesses.flatMap((runner) => asked.map((wire) => ({ runner, wire, harness: runner.name })));
  const results = new Map<string, string>();
  let bench: TrialBench;
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'offsite-matrix-'));
    writeFileSync(join(folder, 'script.yaml'), JSON.stringify(script));
    const certificates = await hostCertificates({}, process.env);
    bench = await openTrialBench({
      ...(certificates && { extraCertificates: certificates.pem }),
      models: Object.fromEntries(wires.map((wire) => [`on-${wire}`, modelOf(wire, folder)])),
    });
  }, installPatience);
  afterAll(async () => {
    await bench?.[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  test.each(cells)('$harness works with a model that speaks $wire', { timeout }, async ({ runner, wire }) => {
    const result = await bench.trial(
      '',
      {
        harness: runner.name,
        model: `on-${wire}`,
        modelConfig: modelOf(wire, folder),
        profile: runner.profile,
        prompt: 'Make one.txt and two.txt.',
        verify: 'test "$(cat one.txt two.txt)" = "$(printf "one\\ntwo")"',
      },
      { memory: 3 * 1024 ** 3, timeouts: { ...timeouts, install: installPatience, harness: turnPatience } },
    );
    expect(result.verdict).toBe('passed');
    if (runner.name === 'aider') {
      const edits = result.events?.flatMap((entry) => (entry.kind === 'tool' ? [entry.input] : []));
      expect(edits).toEqual([{ path: 'one.txt' }, { path: 'two.txt' }]);
    } else {
      expect(result.finalMessage).toBe('Both are there.');
      const all = commandsOf(result) ?? [];
      const commands = all.map(({ command }) => command);
      // Calls of one answer may run at the same time, so either may begin first.
      expect(commands.slice(0, 2).toSorted()).toEqual(['echo one > one.txt', 'echo two > two.txt']);
      expect(commands.slice(2)).toEqual(['paste -d+ one.txt two.txt']);
      const output = all.at(-1)?.output?.trim();
      // Gemini CLI does not name its commands over the protocol, so this is what its model was told.
      if (runner === acp) expect(output).toContain('Output: one+two');
      else expect(output).toBe('one+two');
    }
    expect(result.harnessCounts?.usage ?? result.models?.usage[0]?.usage).toMatchObject({
      inputTokens: 3500,
      outputTokens: 80,
      cacheReadTokens: 2600,
    });
    const exchanges = result.models?.exchanges ?? [];
    expect(exchanges.map((exchange) => exchange.wire)).toEqual(exchanges.map(() => wire));
    expect(exchanges.every(({ failure }) => failure === undefined)).toBe(true);

    const isOwn = runner.wires === 'any' || runner.wires.includes(wire);
    const losses = exchanges.flatMap(({ translation }) => translation?.losses.map(({ path }) => path) ?? []);
    expect(exchanges.every(({ translation }) => (translation === undefined) === isOwn)).toBe(true);
    const lost = [...new Set(losses)].toSorted().map((path) => `\`${path}\``);
    results.set(
      `${runner.name} ${wire}`,
      isOwn ? 'its own' : lost.length === 0 ? 'translated' : `translated, without ${lost.join(', ')}`,
    );
  });

  test('docs/reference/harnesses.md shows the matrix (else: WRITE_MATRIX=1 with this test)', () => {
    const text = readFileSync(page, 'utf8');
    const [before = '', rest = ''] = text.split(from);
    const [shown = '', after = ''] = rest.split(to);
    const shownRows = shown.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
    // A cell that was not run stays as it is.
    const cell = (name: string, at: number) =>
      results.get(`${name} ${wires[at]}`) ??
      shownRows.find(([, first]) => first === `\`${name}\``)?.[at + 2] ??
      'not run';
    const row = (all: readonly string[]) => `| ${all.join(' | ')} |`;
    const table = [
      row(['harness', ...wires.map((wire) => `\`${wire}\``)]),
      row(['---', ...wires.map(() => '---')]),
      ...harnesses.map(({ name }) => row([`\`${name}\``, ...wires.map((_, at) => cell(name, at))])),
    ].join('\n');
    if (process.env.WRITE_MATRIX) writeFileSync(page, `${before}${from}${table}\n${to}${after}`);
    else expect(shown).toBe(`${table}\n`);
  });
}

/** A model that speaks one wire only. */
function modelOf(wire: Wire, folder: string): ModelConfig {
  return ModelConfig.parse({ scripted: join(folder, 'script.yaml'), wire });
}
