import { expect, test } from 'vitest';
import { foreignObstacle, sealed } from '../../src/audit/foreign-trial.ts';
import { noEnvironment } from '../../src/suite/environment.ts';
import { SandboxConfig } from '../../src/suite/sandbox-config.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';

const spec = {
  environment: noEnvironment,
  sandbox: { name: 'theirs', ...SandboxConfig.parse({}) },
} as TrialSpec;
const build = {
  name: 'Dockerfile',
  file: '/home/me/Dockerfile',
  dockerfile: 'FROM scratch\nCOPY . /',
  args: {},
  context: { folder: '/home/me/.ssh', ignore: '', hash: '' },
  images: {},
  place: '',
};

test('what needs files or a repository of this machine is refused, wherever the definition names it', () => {
  const withBuild = { ...noEnvironment, build };
  const service = { name: 'db', build } as never;
  const source = { url: '/home/me/private', repository: '/home/me/private', commit: 'HEAD' } as never;
  expect(foreignObstacle(spec, {})).toBeUndefined();
  const refused = [
    { ...spec, environment: withBuild },
    { ...spec, environment: { ...noEnvironment, services: [service] } },
    { ...spec, environment: { ...noEnvironment, source } },
    { ...spec, testsIn: { environment: withBuild, sandbox: spec.sandbox } },
    { ...spec, testsHosts: ['intranet.example'] },
    { ...spec, steps: { list: [{ testsHosts: ['intranet.example'] }] } as never },
  ];
  for (const one of refused) expect(foreignObstacle(one, {}), JSON.stringify(one)).toMatch(/^its /);
});

test('a sandbox of somebody else gets no variable of this machine, and no weaker shield', () => {
  const theirs = {
    passEnv: ['OPENAI_API_KEY'],
    remoteAdd: 'allow',
    seccomp: 'if-available',
    runtime: 'runc-x',
  };
  const sandboxOf = { ...spec.sandbox, ...theirs } as TrialSpec['sandbox'];
  const { sandbox } = sealed({ ...spec, sandbox: sandboxOf }, {});
  expect(sandbox).toMatchObject({ passEnv: [], remoteAdd: 'refuse', seccomp: 'required' });
  expect(sandbox.runtime).toBeUndefined();
});

const id = `sha256:${'a'.repeat(64)}`;
const digest = `sha256:${'b'.repeat(64)}`;
const using = (image: string, more: object = {}) =>
  ({ ...spec, sandbox: { ...spec.sandbox, image, ...more } }) as TrialSpec;
const record = (image: object) => ({ images: [{ platform: 'linux/amd64', id: '', ...image } as never] });

test('an image that has only a name is refused: here it can be a private one, and prepare has the network', () => {
  const service = { ...noEnvironment, services: [{ name: 'db', image: { name: 'ours/db', place: '' } }] };
  const refused = [
    foreignObstacle(using('ours/private'), {}),
    foreignObstacle(using('ours/private'), record({ name: 'ours/private', digest: 'latest' })),
    foreignObstacle(using('ours/private'), record({ name: 'ours/private', id: 'ours/private' })),
    foreignObstacle(using('aaaaaaaaaaaa'), {}),
    foreignObstacle(using('offsite/base', { harnessImage: 'ours/private' }), {}),
    foreignObstacle({ ...spec, environment: service as never }, {}),
    foreignObstacle({ ...spec, testsIn: { ...using('ours/private'), environment: noEnvironment } }, {}),
  ];
  for (const why of refused) expect(why).toMatch(/the image \S+ has neither a digest nor an id/);
  const left = { kind: 'image', imageId: 'ours/private:latest', storedSize: 0 } as const;
  expect(foreignObstacle(spec, { left })).toMatch(/an image with a name/);
  expect(foreignObstacle(spec, { left: { ...left, imageId: id } })).toBeUndefined();
});

test('an image is taken by the digest or the id that its record has', () => {
  const imageOf = (name: string, used: object) => {
    expect(foreignObstacle(using(name), record(used))).toBeUndefined();
    return sealed(using(name), record(used)).sandbox.image;
  };
  expect(imageOf('offsite/base', {})).toBe('offsite/base');
  expect(imageOf('python:3.12', { name: 'python:3.12', id, digest })).toBe(`python@${digest}`);
  expect(imageOf('host:5000/a/b', { name: 'host:5000/a/b', digest })).toBe(`host:5000/a/b@${digest}`);
  expect(imageOf('mine:1', { name: 'mine:1', id })).toBe(id);
  expect(imageOf(`a@${digest}`, {})).toBe(`a@${digest}`);
});
