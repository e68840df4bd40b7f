import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { attacks } from '../hostile/hostile-text.ts';
import { needs } from '../needs.ts';
import { main, offsiteHere } from './offsite.ts';
import { openPlace, type Place } from './place.ts';

let place: Place;
/** What bash reads to complete commands. */
let forBash: string;
beforeEach(async () => {
  place = openPlace();
  place.write('offsite.yaml', 'profiles: { fast: {}, final: {} }\nsandboxes: { roomy: {} }\nmodels: {}\n');
  const bin = join(place.folder, 'bin');
  mkdirSync(bin);
  writeFileSync(join(bin, 'offsite'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
  chmodSync(join(bin, 'offsite'), 0o755);
  forBash = place.write('completion.bash', await completionFor('bash'));
});
afterEach(() => place[Symbol.dispose]());

const env = () => ({
  PATH: `${join(place.folder, 'bin')}:${process.env.PATH}`,
  HOME: place.folder,
  OFFSITE_HOME: place.dataFolder,
  TERM: 'dumb',
});

async function completionFor(shell: string): Promise<string> {
  return (await offsiteHere(place, ['completion', shell], { dataFolder: null })).stdout;
}

function addBatch(id: string): void {
  using ledger = new Ledger(place.dataFolder, systemClock);
  ledger.batches.add({ service: 'embedded', id, suite: `suite of ${id}`, file: undefined, runs: [] });
}

/** What bash offers after a line, as its own programmable completion computes it. */
function inBash(line: string): string[] {
  const words = line.split(' ');
  const script = `
    . '${forBash}'
    COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})
    COMP_CWORD=${words.length - 1}
    _offsite offsite '${words.at(-1)}' '${words.at(-2)}'
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const cwd = join(place.folder, 'project');
  const { stdout, stderr } = spawnSync('bash', ['-c', script], { env: env(), cwd, encoding: 'utf8' });
  expect(stderr).toBe('');
  return stdout.split('\n').filter((word) => word !== '');
}

describe('bash completes', () => {
  test('commands, their commands, and their options', () => {
    expect(inBash('offsite d')).toEqual(['daemon', 'doctor', 'data']);
    const all = inBash('offsite ');
    expect(all).toContain('run');
    expect(all).not.toContain('complete');
    expect(inBash('offsite service prompts ')).toEqual(['get', 'promote', 'write']);
    expect(inBash('offsite run --fail')).toEqual([
      '--fail-under',
      '--fail-on-regression',
      '--fail-on-case-regression',
    ]);
    expect(inBash('offsite fleet run --prio')).toEqual(['--priority']);
  });

  test('values that the program knows', () => {
    expect(inBash('offsite run --format s')).toEqual(['swe-bench']);
    expect(inBash('offsite run suite.yaml --format = t')).toEqual(['terminal-bench']);
    expect(inBash('offsite completion ')).toEqual(['bash', 'zsh', 'fish']);
    expect(inBash('offsite export --only passed f')).toEqual(['failed']);
  });

  test('batches, profiles and sandboxes of this machine, as words and nothing more', () => {
    addBatch('batch_one');
    addBatch(`$(touch ${join(place.folder, 'ran')})`);
    addBatch(attacks.osc52);
    expect(inBash('offsite resume ')).toEqual(['batch_one']);
    expect(inBash('offsite abandon ')).toEqual(['batch_one']);
    expect(inBash('offsite run --compare-to b')).toEqual(['batch_one']);
    expect(inBash('offsite run --profile f')).toEqual(['fast', 'final']);
    expect(inBash('offsite run x --sandbox ')).toEqual(['local', 'roomy']);
    expect(() => execFileSync('test', ['-e', join(place.folder, 'ran')])).toThrow();
  });

  test('nothing, and without an error, where a file is wrong or no command is known', () => {
    place.write('offsite.yaml', 'profiles: {');
    expect(inBash('offsite run --profile ')).toEqual([]);
    expect(inBash('offsite walk ')).toEqual([]);
  });

  test('files, by itself, where a command takes a file', async () => {
    place.write('suite.yaml', '');
    const typed = `eval "$(offsite completion bash)"\noffsite run su\t\u0001echo \r exit\r`;
    const cwd = join(place.folder, 'project');
    const shell = spawnSync('script', ['-qec', 'bash --norc --noprofile -i', '/dev/null'], {
      cwd,
      env: env(),
      input: typed,
      encoding: 'utf8',
    });
    expect(shell.stdout).toContain('offsite run suite.yaml');
  });
});

describe.for(['zsh', 'fish'] as const)('%s', (shell) => {
  const missing = spawnSync(shell, ['-c', 'true']).error !== undefined;

  // Few machines have them; the one on which this was written did.
  needs(!missing, shell).test('completes commands and values', async () => {
    addBatch('batch_one');
    const file = place.write(`completion.${shell}`, await completionFor(shell));
    const cwd = join(place.folder, 'project');
    const offered = (line: string) => {
      const fish = ['-c', `source '${file}'; complete --do-complete '${line}'`];
      // `_describe` offers what its array has.
      const zsh = [
        '-fc',
        `_describe() { print -rl -- "\${(@P)2}" } ; compdef() { : }; source '${file}'
         words=(${line
           .split(' ')
           .map((word) => `'${word}'`)
           .join(' ')}); CURRENT=$#words; _offsite`,
      ];
      const { stdout } = spawnSync(shell, shell === 'fish' ? fish : zsh, {
        cwd,
        env: env(),
        encoding: 'utf8',
      });
      return stdout.split('\n').flatMap((each) => (each === '' ? [] : [each.split(/[\t:]/, 1)[0]]));
    };
    expect(offered('offsite trial reg')).toEqual(['regrade']);
    expect(offered('offsite resume ')).toEqual(['batch_one']);
    expect(offered('offsite run --prof')).toEqual(['--profile']);
    expect(offered('offsite run --profile ')).toEqual(expect.arrayContaining(['fast', 'final']));
  });
});
