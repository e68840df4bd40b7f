import { afterAll, beforeAll, expect, test } from 'vitest';
import { noEnvironment } from '../../src/suite/environment.ts';
import { scriptTests } from './script-tests.ts';
import { testImage } from './test-image.ts';
import { openTrialBench, type TrialBench } from './trial-bench.ts';

/** Writes to a file that only a running container has, starts a server, and then its command. */
const entrypoint = [
  '#!/bin/bash',
  'set -e',
  'echo "127.0.0.1 blocked.example" >> /etc/hosts',
  'sleep 1',
  'node -e "require(\\"http\\").createServer((q, r) => r.end(\\"ours\\")).listen(80)" &',
  'until curl -s -o /dev/null localhost; do sleep 0.1; done',
  'echo "as $(id -un) in $PWD" > /started',
  'exec "$@"',
].join('\\n');

const dockerfile = (script: string) =>
  `FROM offsite/base\nRUN printf '${script}\\n' > /entrypoint.sh && chmod +x /entrypoint.sh
WORKDIR /app\nENTRYPOINT ["/entrypoint.sh"]\nCMD ["bash"]\n`;

const idle = ['sh', '-c', 'sleep infinity'];

let bench: TrialBench;
let image: Awaited<ReturnType<typeof testImage>>;
beforeAll(async () => {
  bench = await openTrialBench();
  image = await testImage(bench.engine, dockerfile(entrypoint));
});
afterAll(async () => {
  await image?.[Symbol.asyncDispose]();
  await bench?.[Symbol.asyncDispose]();
});

const named = (name: string) => ({
  ...noEnvironment,
  image: { name, place: 'Dockerfile:1' },
  startUp: { command: idle },
});

const isServed =
  'cat /started; [ "$(curl -s blocked.example)" = ours ] && echo 1 > /logs/verifier/reward.txt';

test('the entrypoint of an image has run before the agent, and runs again for the tests', async () => {
  const result = await bench.trial('cat /started; curl -s blocked.example; pkill node; touch made', {
    environment: named(image.name),
    tests: scriptTests(isServed),
  });
  expect(result.cause).toBeUndefined();
  expect(result.trajectory?.[0]?.output).toContain('as root in /app\nours');
  expect(result.verdict).toBe('passed');
  expect(result.startUp).toEqual(['/entrypoint.sh', ...idle]);
  expect(result.filesChanged).toEqual(['made']);
});

test('names get their addresses, and folders are made where the image has none', async () => {
  const look = 'getent hosts blocked.example; stat -c "%a %n" /kept /etc';
  const result = await bench.trial(look, {
    environment: {
      ...noEnvironment,
      hosts: { 'blocked.example': '10.9.8.7' },
      volumes: ['/kept', '/etc'],
    },
    verify: 'getent hosts blocked.example\ntest -d /kept',
  });
  expect(result.verdict).toBe('passed');
  const printed = result.trajectory?.[0]?.output?.replaceAll(/ +/g, ' ');
  expect(printed).toBe('10.9.8.7 blocked.example\n777 /kept\n755 /etc\n');
});

test('without the consent of a format no program of an image runs', async () => {
  const result = await bench.trial('test ! -e /started', {
    environment: { ...named(image.name), startUp: undefined },
    verify: 'test ! -e /started',
  });
  expect(result.verdict).toBe('passed');
  expect(result.startUp).toBeUndefined();
});

test.each([
  ['fails', '#!/bin/sh\\necho no database >&2\\nexit 3', 'no database\nit ended with 3\n'],
  ['ends', '#!/bin/sh\\necho done', 'done\nit ended with 0\n'],
])(
  'a trial whose entrypoint %s is void, with what it printed',
  { timeout: 180_000 },
  async (_, script, output) => {
    await using broken = await testImage(bench.engine, dockerfile(script));
    const { verdict, cause } = await bench.trial('true', {
      environment: named(broken.name),
      tests: scriptTests(isServed),
    });
    expect(verdict).toBe('void');
    expect(cause).toMatchObject({ kind: 'task', phase: 'sandbox', output });
    expect(cause?.message).toBe(
      'Dockerfile:1: the program that the environment starts ended: /entrypoint.sh sh -c sleep infinity',
    );
  },
);

test('an agent gains nothing by links where the program is started again', async () => {
  const links = ['output', 'ended'].map((name) => `ln -sf /etc/agents /offsite/start-up/${name}`).join('; ');
  const plant = `${links}; mv /offsite/start-up /offsite/old; ln -s /etc /offsite/start-up; true`;
  const result = await bench.trial(plant, {
    environment: named(image.name),
    agent: { user: 'nobody' },
    tests: scriptTests(`ls -d /etc/agents /etc/output; ls -ld /offsite/start-up; ${isServed}`),
  });
  expect(result.cause).toBeUndefined();
  expect(result.verdict).toBe('passed');
  const printed = result.validations?.[0]?.logs?.[0]?.value?.text;
  expect(printed).toContain("cannot access '/etc/agents'");
  expect(printed).toContain("cannot access '/etc/output'");
  expect(printed).toMatch(/^drwxrwxrwx/m);
});
