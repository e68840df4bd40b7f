import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { fleetCommand } from '../../src/cli/commands/fleet.ts';
import { openPlace, type Place } from '../cli/place.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const optional = ['@temporalio', '@aws-sdk'];

/** A checkout whose packages are what `npm install offsite` brings. */
function withoutPeers(place: Place): string {
  const folder = join(place.folder, 'offsite');
  const modules = join(folder, 'node_modules');
  mkdirSync(modules, { recursive: true });
  for (const name of ['src', 'runners', 'package.json']) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (!optional.includes(name) && !name.startsWith('.'))
      symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  return join(folder, 'src', 'cli', 'main.ts');
}

test('the packages of the fleet are no dependencies, and its commands say how to install them', async () => {
  const {
    dependencies = {},
    peerDependencies,
    peerDependenciesMeta,
  } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const isOurs = (name: string) => optional.some((scope) => name.startsWith(`${scope}/`));
  expect(Object.keys(dependencies).filter(isOurs)).toEqual([]);
  const peers = Object.keys(peerDependencies).filter(isOurs);
  expect(peers.filter((name) => !peerDependenciesMeta[name]?.optional)).toEqual([]);

  using place = openPlace();
  const main = withoutPeers(place);
  const storage = { s3: { bucket: 'none', endpoint: 'http://127.0.0.1:9' } };
  const config = place.write(
    'offsite.yaml',
    stringify({ service: { url: 'http://127.0.0.1:9' }, fleet: { storage } }),
  );
  const commands = fleetCommand().commands.filter((command) => command.name() !== 'drain');
  expect(commands.length).toBeGreaterThanOrEqual(8);
  const ended = commands.map(async (command) => {
    const args = command.registeredArguments.map(() => 'x');
    const { exitCode, stderr } = await execa(
      process.execPath,
      [main, 'fleet', command.name(), ...args, '--config', config, '--data-folder', place.dataFolder],
      { reject: false, env: { OFFSITE_API_KEY: 'key' }, cwd: place.folder },
    );
    return { name: command.name(), exitCode, stderr };
  });
  for (const { name, exitCode, stderr } of await Promise.all(ended)) {
    expect(exitCode, name).toBe(2);
    for (const peer of peers.filter((one) => one.startsWith('@temporalio/'))) {
      expect(stderr, name).toMatch(new RegExp(`npm install .*${peer}`));
    }
  }
});
