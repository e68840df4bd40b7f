import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';

const main = join(import.meta.dirname, '../../src/cli/main.ts');
const hook = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  const urls = [];
  registerHooks({ load(url, context, next) { urls.push(url); return next(url, context); } });
  process.on('exit', () => console.error('loaded ' + JSON.stringify(urls)));
`)}`;

// Reading zod's hundred modules takes longer than all else that these commands do. Completion is not among
// them: a checkout reads the commands for it, and only the built program has what they take as data.
test.each([['--version'], ['--help'], ['daemon', 'status']])(
  'offsite %s %s loads no schemas, and no dockerode',
  async (...args) => {
    await using home = await mkdtempDisposable(join(tmpdir(), 'offsite-cli-'));
    const env = { HOME: home.path, PATH: process.env.PATH };
    const { stderr } = await execa(process.execPath, ['--import', hook, main, ...args], {
      env,
      extendEnv: false,
      reject: false,
    });
    const loaded: string[] = JSON.parse(/loaded (.*)/.exec(stderr)?.[1] ?? '[]');
    expect(loaded.length).toBeGreaterThan(10);
    expect(loaded.filter((url) => /node_modules\/(zod|dockerode|yaml)\//.test(url))).toEqual([]);
  },
);
