import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runners } from '../../runners/index.ts';
import { hostCertificates } from '../../src/api/host-certificates.ts';
import type { Runner } from '../../src/harness/runner.ts';
import { noEnvironment } from '../../src/suite/environment.ts';
import { ModelConfig } from '../../src/suite/model-config.ts';
import { profileOf } from '../../src/suite/plan.ts';
import { testImage } from './test-image.ts';
import { openTrialBench, type TrialBench, timeouts } from './trial-bench.ts';

/** As slim images have it: neither Node nor git, no search tools and no certificates. */
const slim = `FROM offsite/base
ENV MODE=test
WORKDIR /app
RUN rm -rf /usr/local/bin/* /usr/local/lib/node_modules /usr/bin/git /usr/bin/rg /usr/bin/curl \\
  /usr/bin/jq /usr/bin/python3* /etc/ssl /usr/share/ca-certificates && echo slim > /etc/kind`;

const installMs = 900_000;
const clis = runners.filter(({ cli }) => cli !== undefined);
let bench: TrialBench;
let folder: string;
const obstacles: string[] = [];
let image: Awaited<ReturnType<typeof testImage>>;

beforeAll(async () => {
  const certificates = await hostCertificates({}, process.env);
  folder = mkdtempSync(join(tmpdir(), 'offsite-foreign-'));
  bench = await openTrialBench({
    ...(certificates && { extraCertificates: certificates.pem }),
    models: { played: played() },
    runners: [withNode],
    observeBuild: ({ what, state }) => void (state.kind === 'failed' && obstacles.push(what)),
  });
  image = await testImage(bench.engine, slim);
});
afterAll(async () => {
  await image?.[Symbol.asyncDispose]();
  await bench[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

function played(): ModelConfig {
  const file = join(folder, 'played.yaml');
  const look = 'cat /etc/kind > seen; command -v node npm >> seen; true';
  // aider offers its model no shell: it reads edits from its answers.
  const edit = { when: { tools: false, system: 'expert software developer' }, text: 'seen\n```\nslim\n```' };
  const script = { turns: [{ run: look }, { text: 'Done.' }, edit], otherwise: 'A title' };
  writeFileSync(file, JSON.stringify(script));
  return ModelConfig.parse({ scripted: file });
}

const named = (name: string) => ({ ...noEnvironment, image: { name, place: 'suite.yaml:3:5' } });

test.each(clis.map(({ name }) => name))(
  '%s works in an image without Node, and what it runs sees none',
  { timeout: installMs + 180_000 },
  async (harness) => {
    const result = await bench.trial(
      '',
      {
        harness,
        model: 'played',
        modelConfig: played(),
        environment: named(image.name),
        profile: profileOf({ name: 'default' }),
        verify: 'test "$(cat seen)" = slim',
      },
      { network: 'model', timeouts: { ...timeouts, install: installMs }, memory: 2 * 2 ** 30, pids: 512 },
    );
    expect(result.cause).toBeUndefined();
    expect(result.harnessVersion).toMatch(/^\d/);
    expect(result).toMatchObject({ verdict: 'passed', workspace: '/app' });
    const [install] = result.environment ?? [];
    expect(install).toMatchObject({ phase: 'install', volume: expect.stringMatching(/^offsite-snapshot-/) });
  },
);

/** An install that brings a Node, as those of the CLIs do. */
const withNode = {
  name: 'with-node',
  wires: 'any',
  install: () => 'mkdir -p /offsite/cli/bin && cp /usr/local/bin/node /offsite/cli/bin/',
} as Partial<Runner> as Runner;

test.each([
  [
    'its C library is older than glibc 2',
    'cp /lib/x86_64-linux-gnu/libdl.so.2 /lib/x86_64-linux-gnu/libm.so.6',
  ],
  ['it has no libstdc++.so.6', 'rm /usr/lib/x86_64-linux-gnu/libstdc++.so.6*'],
])('an image that no harness can run in is refused before any trial: %s', async (obstacle, change) => {
  await using changed = await testImage(bench.engine, `FROM offsite/base\nRUN ${change}`);
  const trial = () =>
    bench.trial('', { harness: 'with-node', environment: named(changed.name), verify: 'true' });
  const [first, atTheSameTime] = await Promise.all([trial(), trial()]);
  const later = await trial();
  expect(first).toMatchObject({ verdict: 'void', cause: { kind: 'task', phase: 'sandbox' } });
  expect(first.cause?.message).toContain(
    `suite.yaml:3:5: with-node does not run in the image ${changed.name}: ${obstacle}`,
  );
  expect(first.cause?.message).toContain('harnessImage');
  expect([atTheSameTime.cause, later.cause]).toEqual([first.cause, first.cause]);
  expect(obstacles.splice(0)).toEqual(['with-node in the image of case']);
});

test('an image without glibc is refused, and harnesses that need no install run in it', async () => {
  await using musl = await testImage(
    bench.engine,
    // All its programs are linked statically, as if their C library were another.
    `FROM offsite/base AS built
RUN apt-get update && apt-get install -y --no-install-recommends bash-static busybox-static && mkdir /out \
  && cp /bin/bash-static /out/bash && cp /bin/busybox /out/ \
  && for name in $(busybox --list); do ln -s busybox /out/$name; done
FROM scratch
COPY --from=built /out /bin`,
  );
  const environment = { ...named(musl.name), workdir: '/work' };
  const refused = await bench.trial('', { harness: 'with-node', environment, verify: 'true' });
  expect(refused.cause?.message).toContain('it has no glibc (images of Alpine have musl)');
  const { verdict } = await bench.trial('echo hello > made', { environment, verify: 'test -s made' });
  expect(verdict).toBe('passed');
});
