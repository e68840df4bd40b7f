import { expect, test } from 'vitest';
import { foreignObstacle, sealed } from '../../src/audit/regraded.ts';
import { noEnvironment } from '../../src/suite/environment.ts';
import { SandboxConfig } from '../../src/suite/sandbox-config.ts';
import type { TrialSpec } from '../../src/trial/spec.ts';

const spec = {
  environment: noEnvironment,
  sandbox: { name: 'theirs', ...SandboxConfig.parse({}) },
} as TrialSpec;
const build = {
  ...{ name: 'Dockerfile', file: '/home/me/Dockerfile', dockerfile: 'FROM scratch\nCOPY . /', args: {} },
  ...{ context: { folder: '/home/me/.ssh', ignore: '', hash: '' }, images: {}, place: '' },
};

test('what needs files or a repository of this machine is refused, wherever the definition names it', () => {
  const withBuild = { ...noEnvironment, build };
  const service = { name: 'db', build } as never;
  const source = { url: '/home/me/private', repository: '/home/me/private', commit: 'HEAD' } as never;
  expect(foreignObstacle(spec)).toBeUndefined();
  const refused = [
    { ...spec, environment: withBuild },
    { ...spec, environment: { ...noEnvironment, services: [service] } },
    { ...spec, environment: { ...noEnvironment, source } },
    { ...spec, testsIn: { environment: withBuild, sandbox: spec.sandbox } },
    { ...spec, testsHosts: ['intranet.example'] },
  ];
  for (const one of refused) expect(foreignObstacle(one), JSON.stringify(one)).toMatch(/^its /);
});

test('a sandbox of somebody else gets no variable of this machine, and no weaker shield', () => {
  const theirs = {
    passEnv: ['OPENAI_API_KEY'],
    remoteAdd: 'allow',
    seccomp: 'if-available',
    runtime: 'runc-x',
  };
  const { sandbox } = sealed({ ...spec, sandbox: { ...spec.sandbox, ...theirs } as TrialSpec['sandbox'] });
  expect(sandbox).toMatchObject({ passEnv: [], remoteAdd: 'refuse', seccomp: 'required' });
  expect(sandbox.runtime).toBeUndefined();
});
