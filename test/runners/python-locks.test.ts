import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { pythonVersions } from '../../runners/versions.ts';
import { type PythonCli, pythonInstall } from '../../src/harness/python-cli.ts';

const pin = /^([a-z0-9]+(?:-[a-z0-9]+)*)==[0-9][a-z0-9.+]*(?: ; platform_machine == '(?:x86_64|aarch64)')?$/;

describe.each(Object.entries<PythonCli>(pythonVersions))('the lock of %s', (name, cli) => {
  const [head, ...lines] = readFileSync(cli.lock, 'utf8').trimEnd().split('\n');
  const names = lines.map((line) => pin.exec(line)?.[1]);

  test('has the pinned version, and the exact version of each package', () => {
    expect(lines).toContain(`${cli.package}==${cli.version}`);
    expect(lines.filter((line) => !pin.test(line))).toEqual([]);
    expect(head).toContain(`node scripts/lock-python.ts ${name}`);
  });

  test('fits what the declaration adds, leaves out and builds', () => {
    expect(names).toEqual(expect.arrayContaining([...(cli.also ?? []), ...(cli.built ?? [])]));
    for (const left of cli.without ?? []) expect(names).not.toContain(left);
    // uv asks for the newest setuptools if a package does not say what builds it.
    if (cli.built) expect(names).toContain('setuptools');
  });

  test('is all that the pinned version is installed from', () => {
    const script = pythonInstall(cli);
    expect(script).toContain(`\n${lines.join('\n')}\n`);
    expect(script).toContain('uv pip sync ');
    expect(script).not.toContain('uv pip install ');
  });

  test('has no part in the install of another version', () => {
    const script = pythonInstall(cli, '9.9.9');
    const wanted = [`${cli.package}==9.9.9`, ...(cli.also ?? [])].map((each) => `'${each}'`).join(' ');
    expect(script).toMatch(new RegExp(`^uv pip install .* ${wanted}$`, 'm'));
    expect(script.split('\n').filter((line) => pin.test(line))).toEqual([]);
  });
});
