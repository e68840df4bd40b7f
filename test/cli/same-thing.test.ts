import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { ComparedBatches } from '../../src/comparison/comparison.ts';
import { place, sharedPlace } from './each-place.ts';
import { offsiteHere as offsite } from './offsite.ts';

/** Batches of one suite that do not ask, check or run the same, and what each view says of them. */

sharedPlace();

const act = (file: string) => ({ act: `echo hello > ${file}` });
const suite = (greet: string, run = 'eval "$act"') =>
  place.suite({
    run,
    cases: [
      { id: 'greet', variables: act('greeting'), verify: greet },
      { id: 'other', variables: act('other'), verify: 'test -s other' },
    ],
  });
const strict = 'grep -qx Hello greeting';
const loose = 'grep -qix Hello greeting';

async function ran(file: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await offsite(place, ['run', file, '--json', ...args]);
  expect(stderr).not.toContain('error:');
  return JSON.parse(stdout).batchId;
}

async function marks(): Promise<Record<string, string[]>> {
  const { stdout } = await offsite(place, ['data', 'batches', '--json']);
  const rows: { id: string; marks: string[] }[] = JSON.parse(stdout);
  return Object.fromEntries(rows.map((row) => [row.id, row.marks]));
}

describe('two batches of one suite', () => {
  let first: string;
  let loosened: string;

  test('a check that was loosened is in the headline, and its case in no pair', async () => {
    first = await ran(suite(strict));
    loosened = await ran(suite(loose));
    const { stdout, stderr } = await offsite(place, [
      'compare',
      first,
      loosened,
      '--fail-on-case-regression',
    ]);
    expect(stdout.split('\n').slice(2)).toEqual([
      expect.stringMatching(/^No difference can be told from noise: .*, over 1 case\.$/),
      expect.stringMatching(/^With 1 case and 1 trial of each, .*: at least .* are needed\.$/),
      'Not compared, since not all trials ask and check the same: 1 case: greet (verify)',
      '',
    ]);
    expect(stderr).toContain(
      '; 1 case not compared, since it asks or checks something else now: greet (verify)\n',
    );
  });

  test('a gate that could compare no case is not green, in a run and afterwards', async () => {
    const gate = '--fail-on-case-regression';
    const why =
      /^(error: )?no case can be compared with \S+, so no regression can be judged: .*greet \(verify\)/m;
    const chosen = [suite(strict), '--include', 'greet'];
    const run = await offsite(place, ['run', ...chosen, '--json', '--compare-to', loosened, gate]);
    expect(run.stderr).toMatch(why);
    expect(run.stderr).toContain('Nothing was started.');
    expect(run.stdout).toBe('');
    expect(run.exitCode).toBe(2);
    const strictly = await ran(chosen[0] ?? '', '--include', 'greet');
    for (const each of [gate, '--fail-on-regression']) {
      const later = await offsite(place, ['compare', loosened, strictly, each], {
        env: { GITHUB_ACTIONS: 'true' },
      });
      expect(later.stderr).toMatch(why);
      expect(later.stderr).toContain('\n::error title=Offsite%3A exit code 3::no case can be compared with');
      expect(later.exitCode).toBe(3);
    }
  });

  test('another profile of the same variant is named, and beside a gate where a job looks', async () => {
    const step = place.write('step.md', '');
    const gate = ['--compare-to', loosened, '--fail-on-case-regression'];
    const env = { GITHUB_ACTIONS: 'true', GITHUB_STEP_SUMMARY: step };
    const run = await offsite(place, ['run', suite(loose, 'true\neval "$act"'), '--json', ...gate], { env });
    expect(run.stderr).toContain(`worker also has another profile than in ${loosened}\n`);
    expect(readFileSync(step, 'utf8')).toContain('also has another profile than in');
    const changed = JSON.parse(run.stdout).batchId;
    const { stdout } = await offsite(place, ['compare', loosened, changed, '--json']);
    const [comparison] = (JSON.parse(stdout) as ComparedBatches).comparisons;
    expect(comparison).toMatchObject({ redefined: [], difference: { cases: 2 } });
    expect(comparison?.variantChanges?.map(({ part }) => part)).toEqual(['profile']);
    const shown = await offsite(place, ['compare', loosened, changed]);
    expect(shown.stdout).toContain('B also has another profile.\n');
  });

  test('what was graded again says so wherever the batch is shown', async () => {
    suite(loose);
    await offsite(place, ['trial', 'regrade', first]);
    const mark = '2 graded again: 50 % → 100 % in the batch';
    expect((await marks())[first]).toEqual([mark]);
    expect((await offsite(place, ['data', 'batches'])).stdout).toContain(mark);
    expect((await offsite(place, ['show', first])).stdout).toContain(mark);
    expect((await offsite(place, ['compare', first, loosened])).stdout).toMatch(
      new RegExp(`^A .* \\(${mark}\\): 100 %, 1 of 1 trial passed`),
    );
  });

  test('a run of chosen cases is marked, and counts as the last one only for these cases', async () => {
    const file = suite(loose);
    const last = await ran(file);
    const partial = await ran(file, '--include', 'greet');
    expect((await marks())[partial]).toEqual(['1 of 2 cases']);
    for (const b of [[], ['last']]) {
      const { stdout, stderr } = await offsite(place, ['compare', first, ...b]);
      expect(stdout).toContain(`\nB  ${last} `);
      expect(stderr).toContain(`batch ${partial} of small started later and has only some of the cases`);
    }
    const compared = async (...args: string[]) => {
      const { stdout } = await offsite(place, ['run', file, '--compare-to', 'last', '--json', ...args]);
      return (JSON.parse(stdout).comparison as ComparedBatches).comparisons[0]?.a;
    };
    expect(await compared('--include', 'greet')).toMatchObject({
      batches: [partial],
      marks: ['1 of 2 cases'],
    });
    expect(await compared()).toMatchObject({ batches: [last], marks: [] });
  });
});
