import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, symlinkSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startRequest } from '../../src/suite/plan.ts';
import { eachFolder, folder, write } from '../each-folder.ts';
import { load, problems, variants } from './load-in-folder.ts';

eachFolder();

test('what is too long for an environment is refused where it stands; an instruction is not', () => {
  const long = 'x'.repeat(128 * 1024);
  const suite = (name: string) =>
    `suite: { id: s, prompt: "{{${name}}}" }\n${variants}cases: [{ id: a, verify: "true", variables: { ${name}: ${long} } }]\n`;
  expect(problems(suite('task'))).toEqual([
    expect.stringMatching(/^suite\.yaml:3:\d+: cases\[0\]\.variables\.task: is too long for an environment/),
  ]);
  expect(load(suite('instruction')).cases).toHaveLength(1);
  expect(problems(suite('task'), `profiles:\n  p: { run: "true", env: { BIG: ${long} } }\n`)[0]).toMatch(
    /^offsite\.yaml:2:\d+: profiles\.p\.env\.BIG: is too long for an environment/,
  );
  const environment = `environment: { env: { BIG: ${long} } }\n`;
  expect(problems(`${environment}${suite('instruction')}`)).toEqual([
    expect.stringMatching(/^suite\.yaml:1:\d+: environment\.env\.BIG: is too long for an environment/),
  ]);
});

describe('an environment', () => {
  const cases = `${variants}cases:
  - { id: a, verify: "true" }
  - { id: b, verify: "true", environment: { image: "my/other", workdir: /srv/b, user: app } }
`;
  const config = 'profiles:\n  p: { run: "true" }\nadvanced: { images: { "ubuntu:24.04": my/ubuntu } }\n';

  test('of a case replaces the suite’s as a whole, and images are mapped', () => {
    const plan = load(
      `suite: { id: s, prompt: x }
environment: { image: "ubuntu:24.04", env: { A: b }, resources: { memory: 64m, cpus: 2 } }
${cases}`,
      config,
    );
    expect(plan.cases.map(({ local }) => local.environment)).toEqual([
      {
        image: { name: 'ubuntu:24.04', mappedTo: 'my/ubuntu', place: `${folder}/suite.yaml:2:16` },
        env: { A: 'b' },
        resources: { memory: 64 * 1024 ** 2, cpus: 2 },
      },
      {
        image: { name: 'my/other', place: `${folder}/suite.yaml:6:45` },
        workdir: '/srv/b',
        user: 'app',
        env: {},
        resources: {},
      },
    ]);
    expect(JSON.stringify(startRequest(plan))).not.toMatch(/ubuntu|other/);
  });

  test.each([
    ['{ workdir: app }', 'environment.workdir: expected an absolute path'],
    ['{ workdir: / }', 'environment.workdir: expected an absolute path'],
    ['{ workdir: /tmp }', '/tmp: it has files of other programs, so it cannot be emptied to grade'],
    ['{ workdir: /etc }', 'environment.workdir: Offsite cannot use this folder'],
    [`{ workdir: /${'w'.repeat(300)} }`, 'environment.workdir: this path is longer than engines take'],
    [`{ workdir: ${`/${'w'.repeat(200)}`.repeat(30)} }`, 'environment.workdir: this path is longer than'],
    ['{ workdir: /offsite/x }', 'environment.workdir: Offsite cannot use this folder'],
    ['{ workdir: /a/../etc }', 'environment.workdir: Offsite cannot use this folder'],
    ['{ env: { LD_PRELOAD: x } }', 'this name decides how programs run'],
    ['{ env: { "a b": x } }', 'expected a name of letters'],
    ['{ resources: { memory: lots } }', 'environment.resources.memory: expected a size'],
    ['{ imgae: x }', 'imgae'],
    ['{ healthcheck: { interval: 1s } }', 'environment.healthcheck.command'],
    ['{ healthcheck: { command: x, retries: 0 } }', 'environment.healthcheck.retries'],
  ])('%s is refused with its place', (environment, message) => {
    const [problem] = problems(`suite: { id: s, prompt: x }\nenvironment: ${environment}\n${cases}`);
    expect(problem).toMatch(/^suite.yaml:2:/);
    expect(problem).toContain(message);
  });

  const withBuild = (build: string) =>
    `suite: { id: s, prompt: x }\nenvironment: { build: ${build} }\n${variants}cases: [{ id: a, verify: "true" }]\n`;

  test('keeps what a build needs, and a hash of its context', () => {
    write('app/Dockerfile', 'FROM a\n');
    write('app/.dockerignore', '*.log\n');
    write('app/a.log', 'left out');
    const build = () =>
      load(withBuild('{ context: app, args: { A: 1, B: true } }')).cases[0]?.local.environment.build;
    const first = build();
    expect(first).toMatchObject({
      name: 'app/Dockerfile',
      file: join(folder, 'app/Dockerfile'),
      dockerfile: 'FROM a\n',
      args: { A: '1', B: 'true' },
      context: { folder: join(folder, 'app'), ignore: '*.log\n\n**/.git' },
      place: `${folder}/suite.yaml:2:16`,
    });
    write('app/a.log', 'another');
    expect(build()).toEqual(first);
    for (const change of [
      () => write('app/b', ''),
      () => write('app/b', 'content'),
      () => chmodSync(join(folder, 'app/b'), 0o755),
      () => symlinkSync('../../outside', join(folder, 'app/link')),
      () => mkdirSync(join(folder, 'app/empty')),
    ]) {
      const before = build()?.context.hash;
      change();
      expect(build()?.context.hash).not.toBe(before);
    }
  });

  test.each([
    ['{ context: nowhere }', 'suite.yaml:2:16: environment.build: cannot read', 'nowhere'],
    ['{ context: .. }', 'suite.yaml:2:16', "outside the suite's folder"],
    ['{ context: out }', 'suite.yaml:2:16', "outside the suite's folder"],
    ['{ dockerfile: none }', 'suite.yaml:2:16: environment.build: cannot read', 'none'],
    ['{ target: nope }', 'Dockerfile:1:1', 'it has no stage nope: its stages are first'],
    ['{ dockerfile: bad }', 'bad:2:1', 'unknown instruction: RUNN'],
    ['{ context: large }', 'suite.yaml:2:16', 'its files have more than 2048 MiB'],
    ['{ context: pipe }', 'suite.yaml:2:16', 'pipe is neither a file, a folder nor a link'],
    ['{ contxt: x }', 'suite.yaml:2', 'unknown key'],
    ['{}, image: x ', 'suite.yaml:2', 'has an image and a build'],
  ])('with the build %s is refused', (build, place, message) => {
    write('Dockerfile', 'FROM a AS first\n');
    write('bad', 'FROM a\nRUNN b\n');
    write('large/Dockerfile', 'FROM a\n');
    truncateSync(write('large/file', ''), 3 * 1024 ** 3);
    write('pipe/Dockerfile', 'FROM a\n');
    execFileSync('sh', ['-c', 'mkfifo "$0"', join(folder, 'pipe/pipe')]);
    symlinkSync('/usr', join(folder, 'out'));
    const isRoot = build === '{ target: nope }' || build.includes('dockerfile');
    if (isRoot) rmSync(join(folder, 'large'), { recursive: true });
    if (isRoot) rmSync(join(folder, 'pipe'), { recursive: true });
    const [problem] = problems(withBuild(build));
    expect(problem).toContain(place);
    expect(problem).toContain(message);
  });

  test('has files and folders with their modes and links, which are never followed', () => {
    chmodSync(write('one.sh', 'one'), 0o755);
    write('start/sub/two', 'two');
    write('start/.git/config', 'left out');
    symlinkSync('/etc/shadow', join(folder, 'start/link'));
    const environment = '{ files: { bin/one: one.sh }, folders: { .: start, /opt/start: start/sub } }';
    const plan = load(
      `suite: { id: s, prompt: x }\nenvironment: ${environment}\n${variants}cases: [{ id: a, verify: x }]`,
    );
    expect(plan.cases[0]?.local.environment.files).toEqual([
      { path: 'link', linkTarget: '/etc/shadow' },
      { path: 'sub', folder: true, mode: 0o755 },
      { path: 'sub/two', content: Buffer.from('two'), mode: 0o644 },
      { path: '/opt/start', folder: true, mode: 0o755 },
      { path: '/opt/start/two', content: Buffer.from('two'), mode: 0o644 },
      { path: 'bin/one', content: Buffer.from('one'), mode: 0o755 },
    ]);
  });

  test.each([
    ['{ files: { a: none } }', 'environment.files'],
    ['{ files: { a: /etc/hostname } }', "outside the suite's folder"],
    ['{ files: { ../a: suite.yaml } }', 'expected a path without ..'],
    ['{ files: { .: suite.yaml } }', 'expected the path of a file'],
    ['{ folders: { a: .. } }', "outside the suite's folder"],
    ['{ folders: { a: suite.yaml } }', 'it is not a folder'],
  ])('with %s is refused with its place', (environment, message) => {
    const [problem] = problems(`suite: { id: s, prompt: x }\nenvironment: ${environment}\n${cases}`);
    expect(problem).toMatch(/^suite.yaml:2:/);
    expect(problem).toContain(message);
  });
});
