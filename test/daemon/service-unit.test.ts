import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { execa } from 'execa';
import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { expect, onTestFinished, test } from 'vitest';
import { type PlanOptions, planUnit } from '../../src/cli/daemon/plan-unit.ts';
import { removeUnit, writeUnit } from '../../src/cli/daemon/unit-file.ts';
import { ConfigFile } from '../../src/suite/config-file.ts';
import { main } from '../cli/offsite.ts';
import { needs } from '../needs.ts';

const config = { ...ConfigFile.parse({}), file: '/etc/offsite/offsite.yaml' };
const usual: PlanOptions = { scope: 'system', config, dataFolder: undefined, runAs: undefined };

function home(): string {
  const folder = mkdtempSync(join(tmpdir(), 'offsite-unit-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function planned(
  options: Partial<PlanOptions> = {},
  platform: NodeJS.Platform = 'linux',
  home = '/home/ada',
) {
  return planUnit(
    { ...usual, ...options },
    { platform, env: {}, home, uid: 1000, program: [process.execPath, '/opt/offsite/bin/offsite.mjs'] },
  );
}

/** `Name=value` of a unit's section, all values of a name in their order. */
function settings(text: string): Map<string, string[]> {
  const lines = text.split('\n').filter((line) => /^\w+=/.test(line));
  const pairs = lines.map((line): [string, string] => [
    line.slice(0, line.indexOf('=')),
    line.slice(line.indexOf('=') + 1),
  ]);
  return new Map(
    [...Map.groupBy(pairs, ([name]) => name)].map(([name, all]) => [name, all.map(([, value]) => value)]),
  );
}

test('the unit starts the daemon that wrote it, with its data folder and configuration, and restarts it after a failure', () => {
  const unit = settings(planned().unit.text);
  expect(unit.get('ExecStart')).toEqual([
    `${process.execPath} /opt/offsite/bin/offsite.mjs daemon --data-folder /var/lib/offsite --config /etc/offsite/offsite.yaml`,
  ]);
  expect(unit.get('Restart')).toEqual(['on-failure']);
  expect(unit.get('Type')).toEqual(['notify']);
  expect(unit.get('NotifyAccess')).toEqual(['all']);
  expect(Number(unit.get('WatchdogSec'))).toBeGreaterThan(0);
});

test('the unit lets the daemon write to its data folder and to nothing else', () => {
  expect(settings(planned().unit.text).get('StateDirectory')).toEqual(['offsite']);
  const elsewhere = settings(planned({ dataFolder: '/srv/my results' }).unit.text);
  expect(elsewhere.get('ReadWritePaths')).toEqual(['"/srv/my results"']);
  expect(elsewhere.get('ProtectSystem')).toEqual(['strict']);
});

test('no key is in the unit: they are read from a file of its user', () => {
  expect(settings(planned().unit.text).get('EnvironmentFile')).toEqual(['-/etc/offsite/daemon.env']);
  expect(settings(planned({ scope: 'user' }).unit.text).get('EnvironmentFile')).toEqual([
    '-/home/ada/.config/offsite/daemon.env',
  ]);
});

test("percent and dollar signs of a folder's name stay what they are", () => {
  const unit = settings(planned({ dataFolder: '/srv/100%/$HOME "x"' }).unit.text);
  expect(unit.get('ExecStart')?.[0]).toContain(' "/srv/100%%/$$HOME \\"x\\"" ');
});

test('a user has a unit of their own, which asks for nothing that only the system may do', () => {
  const { unit } = planned({ scope: 'user' });
  expect(unit.file).toBe('/home/ada/.config/systemd/user/offsite.service');
  const written = settings(unit.text);
  expect(written.get('WantedBy')).toEqual(['default.target']);
  for (const name of ['User', 'ProtectSystem', 'PrivateDevices', 'CapabilityBoundingSet']) {
    expect(written.has(name)).toBe(false);
  }
});

const analyze = await execa('systemd-analyze', ['--version'], { reject: false });

needs(!analyze.failed, 'systemd-analyze').test(
  'systemd finds nothing to complain about in the units',
  async () => {
    const folder = home();
    for (const scope of ['system', 'user'] as const) {
      const { unit } = planned({ scope, dataFolder: '/srv/100% $x' });
      const file = join(folder, `offsite-${scope}.service`);
      // The program has to be there, and this one is on every machine.
      writeFileSync(file, unit.text.replace(process.execPath, '/bin/true'));
      const { all } = await execa('systemd-analyze', ['verify', '--man=no', '--generators=no', file], {
        reject: false,
        all: true,
      });
      const about = all.split('\n').filter((line) => /ignoring|unknown|invalid|failed to parse/i.test(line));
      const ours = about.filter((line) => line.includes(`offsite-${scope}`));
      expect(ours).toEqual([]);
    }
  },
);

test('on macOS it is a plist that reads the variables and then becomes the daemon', async () => {
  const folder = home();
  const { unit, spec } = planned({ scope: 'user', dataFolder: join(folder, 'a & b') }, 'darwin', folder);
  expect(unit.file).toBe(join(folder, 'Library/LaunchAgents/local.offsite.daemon.plist'));
  expect(XMLValidator.validate(unit.text)).toBe(true);
  const { plist } = new XMLParser().parse(unit.text);
  const words: string[] = plist.dict.array.string;
  expect(words.slice(-4)).toEqual(spec.command.slice(-4));

  mkdirSync(dirname(spec.environmentFile), { recursive: true });
  writeFileSync(spec.environmentFile, "OFFSITE_URL='https://evals.example/?a=$b'\n");
  const script = words.slice(1, words.indexOf(spec.environmentFile) + 1);
  const { stdout } = await execa('/bin/sh', [...script, 'printenv', 'OFFSITE_URL']);
  expect(stdout).toBe('https://evals.example/?a=$b');
});

test('where no service manager is known, it says so and what to do instead', () => {
  expect(() => planned({}, 'win32')).toThrow(
    expect.objectContaining({
      code: 'SERVICE_MANAGER_UNKNOWN',
      hint: expect.stringContaining('compose.yaml'),
    }),
  );
});

test('installing again leaves the file as it is, and replaces it where the settings are others', () => {
  const folder = home();
  const first = planned({ scope: 'user' }, 'linux', folder).unit;
  const other = planned({ scope: 'user', dataFolder: '/srv/results' }, 'linux', folder).unit;
  expect(writeUnit(first, { force: false })).toBe('written');
  expect(writeUnit(first, { force: false })).toBe('unchanged');
  expect(writeUnit(other, { force: false })).toBe('replaced');
  expect(readFileSync(first.file, 'utf8')).toBe(other.text);
});

test('a file that somebody else wrote is neither replaced nor removed, unless that is forced', () => {
  const { unit } = planned({ scope: 'user' }, 'linux', home());
  mkdirSync(dirname(unit.file), { recursive: true });
  writeFileSync(unit.file, '[Service]\nExecStart=/bin/true\n');
  const foreign = expect.objectContaining({ code: 'SERVICE_FILE_FOREIGN' });
  expect(() => writeUnit(unit, { force: false })).toThrow(foreign);
  expect(() => removeUnit(unit, { force: false })).toThrow(foreign);
  expect(readFileSync(unit.file, 'utf8')).toContain('/bin/true');
  expect(writeUnit(unit, { force: true })).toBe('replaced');
  expect(removeUnit(unit, { force: true })).toBe('removed');
});

test('a unit is not taken from under a manager that still starts it', () => {
  const { unit } = planned({ scope: 'user' }, 'linux', home());
  writeUnit(unit, { force: false });
  const link = unit.enabledBy ?? '';
  mkdirSync(dirname(link), { recursive: true });
  symlinkSync(unit.file, link);
  expect(() => removeUnit(unit, { force: false })).toThrow(
    expect.objectContaining({
      code: 'SERVICE_ENABLED',
      hint: expect.stringContaining('systemctl --user disable --now offsite.service'),
    }),
  );
  expect(existsSync(unit.file)).toBe(true);
  rmSync(link);
  expect(removeUnit(unit, { force: false })).toBe('removed');
  expect(removeUnit(unit, { force: false })).toBe('absent');
});

test('the commands write the file, say what to do next, and take it away again', async () => {
  const folder = home();
  const env = { PATH: process.env.PATH ?? '', HOME: folder, NO_COLOR: '1' };
  const run = (...args: string[]) =>
    execa(process.execPath, [main, 'daemon', ...args], { cwd: folder, env, extendEnv: false });
  const printed = await run('install', '--user', '--print', '--data-folder', 'results');
  const { stdout } = await run('install', '--user', '--data-folder', 'results');
  const [, file = ''] = /^written (.+)$/m.exec(stdout) ?? [];
  expect(`${printed.stdout}\n`).toBe(readFileSync(file, 'utf8'));
  expect(printed.stdout).toContain(join(realpathSync(folder), 'results'));
  expect(stdout).toMatch(/systemctl --user enable|launchctl bootstrap/);
  expect(printed.stderr).toContain('no offsite.yaml was found');
  const nobody = await run('install', '--print', '--run-as', 'no-such-user').catch((error) => error);
  expect(nobody).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('no user no-such-user') });
  expect((await run('uninstall', '--user')).stdout).toContain(`removed ${file}`);
  expect(existsSync(file)).toBe(false);
});
