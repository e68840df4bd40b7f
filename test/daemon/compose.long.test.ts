import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import dockerignore from '@balena/dockerignore';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { offsite } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';

interface ComposeFile {
  services: Record<string, ComposeService>;
  volumes: Record<string, unknown>;
}

interface ComposeService {
  command: string[];
  build: { context: string; args: Record<string, string> };
  environment: Record<string, string>;
  volumes: string[];
  healthcheck: { test: string[] };
}

const root = (name: string) => readFileSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), 'utf8');
const { services, volumes } = parse(root('compose.yaml')) as ComposeFile;

function daemon(): ComposeService {
  const { daemon } = services;
  if (!daemon) throw new Error('compose.yaml has no service `daemon`');
  return daemon;
}

test('compose.yaml gives the daemon the engine, and a volume that its results outlive the container in', () => {
  expect(daemon().volumes).toContain('/var/run/docker.sock:/var/run/docker.sock');
  const home = daemon().environment.OFFSITE_HOME;
  const [volume] = daemon()
    .volumes.filter((mount) => mount.endsWith(`:${home}`))
    .map((mount) => mount.split(':')[0]);
  expect(Object.keys(volumes)).toContain(volume);
});

test('compose.yaml mounts the configuration where the daemon looks for it', () => {
  const file = daemon().environment.OFFSITE_CONFIG;
  expect(daemon().volumes.map((mount) => mount.split(':')[1])).toContain(file);
});

test('compose.yaml builds what the Dockerfile has arguments for', () => {
  const known = [...root('Dockerfile').matchAll(/^ARG (\w+)/gm)].map(([, name]) => name);
  expect(known).toEqual(expect.arrayContaining(Object.keys(daemon().build.args)));
});

test('the build of the image sees the files that the build of the package names', () => {
  const seen = dockerignore.default().add(root('.dockerignore'));
  const named = [...root('scripts/build.ts').matchAll(/'(tsconfig[\w.]*json)'/g)].map(
    ([, name = '']) => name,
  );
  expect(named.length).toBeGreaterThan(0);
  const files = [
    ...named,
    'package.json',
    'package-lock.json',
    'scripts/keep-fleet-packages.ts',
    'src/cli/main.ts',
  ];
  expect(files.filter((file) => seen.ignores(file))).toEqual([]);
  expect(seen.ignores('daemon.env')).toBe(true);
});

test('compose.yaml starts the daemon with options that it has, and asks after its health where it answers', async () => {
  using place = openPlace();
  const [command = '', ...options] = daemon().command;
  const { stdout } = await offsite(place, [command, '--help']);
  for (const option of options.filter((word) => word.startsWith('--'))) expect(stdout).toContain(option);
  const address = options[options.indexOf('--listen') + 1];
  expect(daemon().healthcheck.test.at(-1)).toContain(`http://${address}/healthz`);
});
