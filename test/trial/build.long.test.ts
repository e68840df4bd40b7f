import { chmodSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connectEngine } from '../../src/engine/connect.ts';
import type { Engine } from '../../src/engine/engine.ts';
import type { CaseEnvironment } from '../../src/suite/environment.ts';
import { loadConfig } from '../../src/suite/load-config.ts';
import { loadSuite } from '../../src/suite/load-suite.ts';
import { hostEnvironmentOf } from '../../src/trial/prepare/environment.ts';
import type { BuildEvent } from '../../src/trial/prepare/obtain-image.ts';
import { eachFolder, folder, write } from '../each-folder.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { testImage } from './test-image.ts';
import { openTrialBench, type TrialBench } from './trial-bench.ts';

eachFolder();

const certificate = `-----BEGIN CERTIFICATE-----\nof this host ${crypto.randomUUID()}\n-----END CERTIFICATE-----\n`;
const proxy = `http://user:${crypto.randomUUID()}@proxy.example:8080`;
const withProxy = { passEnv: ['HTTPS_PROXY'] };

/** The environment of a suite with this build, and the files that were written. */
function built(build: Record<string, unknown>, images: Record<string, string> = {}): CaseEnvironment {
  write('offsite.yaml', JSON.stringify({ profiles: { p: { run: 'true' } }, images }));
  const suite = {
    suite: { id: 's', prompt: 'x' },
    environment: { build },
    variants: [{ model: 'none', harness: 'command', profile: 'p' }],
    cases: [{ id: 'a', verify: 'true' }],
  };
  const plan = loadSuite(
    write('suite.yaml', JSON.stringify(suite)),
    loadConfig({ suiteFolder: folder, env: {} }),
    [{ name: 'command', wires: [], runsScript: true, continues: false, mcp: [], limits: [] }],
  );
  const [planned] = plan.cases;
  if (!planned) throw new Error('the plan has a case');
  return planned.local.environment;
}

/** What makes each test's image new. */
const unique = () => `RUN echo ${crypto.randomUUID()} > /unique\n`;

/** Whether an image has a text in a layer, its configuration or its history. */
async function holds(engine: Engine, image: string, texts: string[]): Promise<string[]> {
  const archive = await dockerOf(engine).getImage(image).get();
  const found = new Set<string>();
  let tail = Buffer.alloc(0);
  for await (const chunk of archive) {
    const seen = Buffer.concat([tail, chunk as Buffer]);
    for (const text of texts) if (seen.includes(text)) found.add(text);
    tail = seen.subarray(-1024);
  }
  return [...found];
}

describe.each([
  ['BuildKit', process.env, 'buildkit'],
  ['the classic builder', { ...process.env, PATH: '/nowhere' }, 'classic'],
] as const)('a Dockerfile, built by %s,', (_, env, kind) => {
  let bench: TrialBench;
  let engine: Engine;
  let events: BuildEvent[];
  const opened = new AsyncDisposableStack();
  beforeAll(async () => {
    engine = opened.use(await connectEngine({ instance: `test-${crypto.randomUUID()}`, env }));
    const host = hostEnvironmentOf({ models: {} }, { HTTPS_PROXY: proxy });
    const extraCertificates = Buffer.from(certificate);
    const observeBuild = (event: BuildEvent) => events.push(event);
    bench = opened.use(await openTrialBench({ engine, extraCertificates, host, observeBuild }));
  });
  afterAll(() => opened.disposeAsync(), 60_000);
  beforeEach(async (context) => {
    events = [];
    if (kind === 'buildkit' && engine.capabilities.product === 'Podman')
      context.skip('Podman builds by itself');
  });

  test('makes the environment of all trials once, from what .dockerignore leaves', async () => {
    expect((await engine.builder()).kind).toBe(kind);
    write('app/.dockerignore', '*.log\nsecret\n!secret/kept\n');
    write('app/a.log', 'no');
    write('app/secret/hidden', 'no');
    write('app/secret/kept', 'yes');
    write('app/.git/config', 'no');
    chmodSync(write('app/run.sh', '#!/bin/sh\necho ran'), 0o755);
    symlinkSync('/etc/passwd', join(folder, 'app/link'));
    write(
      'app/Dockerfile',
      `ARG BASE=nobody/has
FROM $BASE:this AS first
${unique()}ARG WORD
RUN echo "$WORD" > /word
FROM first AS second
WORKDIR /srv/app
COPY . .
ENV MODE=built
FROM second AS last
RUN false
`,
    );
    const environment = built(
      { context: 'app', target: 'second', args: { WORD: 'hello', BASE: 'some/base' } },
      { 'some/base:this': 'offsite/base' },
    );
    const look = 'pwd; find . -type f | sort; readlink link; ./run.sh; cat /word; echo $MODE';
    const results = await Promise.all(
      [0, 1].map(() => bench.trial(look, { environment, verify: 'test -x run.sh\ntest "$MODE" = built' })),
    );
    const listing = `/srv/app
${kind === 'buildkit' ? './.dockerignore\n' : ''}./Dockerfile
./run.sh
./secret/kept
/etc/passwd
ran
hello
built
`;
    for (const { verdict, cause, trajectory, environment: steps, mappedImages } of results) {
      expect(cause).toBeUndefined();
      expect(trajectory?.[0]?.output).toBe(listing);
      expect(verdict).toBe('passed');
      expect(steps?.map(({ phase }) => phase)).toEqual(['build', 'prepare']);
      expect(steps?.[0]?.description).toBe('build of app/Dockerfile');
      expect(mappedImages).toEqual([{ name: 'some/base:this', usedInstead: 'offsite/base' }]);
    }
    const ofBuild = events.filter(({ what }) => what === 'build of app/Dockerfile');
    expect(ofBuild.map(({ state }) => state.kind)).toEqual(['running', 'built']);
    const kept = (await engine.keptSnapshots()).find(({ id }) => id === results[0]?.environment?.[0]?.image);
    expect(kept).toMatchObject({ description: 'build of app/Dockerfile' });
    expect(kept?.bytes).toBeLessThan(10 * 1024 ** 2);
  });

  test('has the network, the proxies and the certificates of the host, and keeps none of it', async () => {
    const look = `{ echo "proxy $HTTPS_PROXY"; cat "$SSL_CERT_FILE"; }`;
    write(
      'Dockerfile',
      `FROM offsite/base\n${unique()}RUN ${look} > /tmp/seen 2>&1; wc -l < /proc/net/dev > /lines; \
grep -c 'of this host' /tmp/seen > /trusted; grep -c 'proxy http' /tmp/seen > /proxied; rm /tmp/seen\nCMD ["true"]\n`,
    );
    const result = await bench.trial(
      'cat /lines /trusted /proxied',
      { environment: built({}), verify: 'true' },
      withProxy,
    );
    expect(result.cause).toBeUndefined();
    expect(result.trajectory?.[0]?.output).toBe(kind === 'buildkit' ? '4\n1\n1\n' : '4\n0\n1\n');
    const image = result.environment?.[0]?.image ?? '';
    const [secretLine = ''] = certificate.split('\n').slice(1);
    expect(await holds(engine, image, [secretLine, proxy, '/usr/bin/bash'])).toEqual(['/usr/bin/bash']);
    const { Config } = await dockerOf(engine).getImage(image).inspect();
    expect(JSON.stringify(Config.Env)).not.toMatch(/CERT|PROXY|BUNDLE/i);
  });

  test('that fails makes all trials of the case void for the task, with the last lines, after one build', async () => {
    write(
      'Dockerfile',
      `FROM offsite/base\n${unique()}RUN echo so far so good && echo broken >&2 && exit 4\n`,
    );
    const environment = built({});
    const trial = () => bench.trial('true', { environment, verify: 'true' });
    for (const { verdict, cause } of [await trial(), await trial()]) {
      expect(verdict).toBe('void');
      expect(cause).toMatchObject({ kind: 'task', phase: 'build' });
      expect(cause?.message).toContain(`${join(folder, 'Dockerfile')}: `);
      expect(cause?.output).toContain('so far so good');
      expect(cause?.output).toContain('broken');
    }
    expect(events.map(({ state }) => state.kind)).toEqual(['running', 'failed']);
  });

  test('that fails tells its steps as the author wrote them', async () => {
    write('Dockerfile', `FROM offsite/base\n${unique()}RUN echo broken && exit 4\n`);
    const { cause } = await bench.trial('true', { environment: built({}), verify: 'true' }, withProxy);
    expect(cause).toMatchObject({ output: expect.stringMatching(/ RUN echo broken/) });
  });

  test('has here-documents, whatever builds it', async () => {
    write(
      'Dockerfile',
      `FROM offsite/base\n${unique()}SHELL ["/bin/bash", "-c"]
RUN <<EOF
set -e
[[ "$0" == *bash ]] && echo "one $((1 + 1))" > /one
EOF
# A comment
RUN cat <<'EOF' > /two && echo done >> /two
$HOME is 'not' replaced
EOF
RUN <<EOF
#!/usr/bin/env node
require('node:fs').writeFileSync('/three', 'from Node')
EOF
WORKDIR /app
COPY --link Dockerfile ./
`,
    );
    const { cause, trajectory } = await bench.trial('cat /one /two /three; ls; ls -A /tmp | wc -l', {
      environment: built({}),
      verify: 'true',
    });
    expect(cause).toBeUndefined();
    expect(trajectory?.[0]?.output).toBe("one 2\n$HOME is 'not' replaced\ndone\nfrom NodeDockerfile\n0\n");
  });

  test('that needs another builder is told before any step runs', async () => {
    write('file', 'x');
    write('Dockerfile', `FROM offsite/base\n${unique()}COPY --chmod=700 file /\nCOPY <<EOF /b\nx\nEOF\n`);
    const { cause } = await bench.trial('true', { environment: built({}), verify: 'true' });
    const { frontend } = await engine.builder();
    if (frontend === 'current') return expect(cause).toBeUndefined();
    expect(cause).toMatchObject({ kind: 'task', phase: 'build' });
    const expected =
      frontend === 'classic'
        ? `/Dockerfile:3: COPY --chmod needs BuildKit: install docker buildx beside the docker CLI`
        : `/Dockerfile:4: a here-document of COPY needs Docker 23`;
    expect(cause?.message).toContain(expected);
    expect(cause?.output ?? '').not.toContain('RUN');
  });

  test('fetches nothing from what listens on localhost, unless the owner allows it', async () => {
    let requests = 0;
    const server = createServer((_request, response) => {
      requests += 1;
      response.end('from the host');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/x`;
    await using parent = await testImage(engine, `FROM offsite/base\nONBUILD ADD ${address} /parent\n`);
    const quoted = `${address.slice(0, 2)}"${address.slice(2)}"`;
    try {
      for (const lines of [
        `FROM offsite/base\nADD ${address} /x`,
        `FROM offsite/base\nadd --chown=0:0 \\\n  ${address} /x`,
        `FROM offsite/base\nADD [${JSON.stringify(address)}, "/x"]`,
        `FROM offsite/base\nADD ${quoted} /x`,
        `FROM offsite/base\nARG FROM_HERE=${address}\nADD $FROM_HERE /x`,
        `FROM offsite/base\nADD git://127.0.0.1/x.git /x`,
        `FROM offsite/base AS one\nONBUILD ADD ${address} /x\nFROM one`,
        `FROM ${parent.name}`,
      ]) {
        write('Dockerfile', `${lines}\n${unique()}`);
        const { cause } = await bench.trial('true', { environment: built({}), verify: 'true' });
        expect(cause?.message, lines).toMatch(/Dockerfile:\d: ADD may fetch an address.*remoteAdd: allow/);
      }
      expect(requests).toBe(0);
      const front = new URL(address).host;
      const stranger = await testImage(engine, `FROM offsite/base\n${unique()}`);
      for (const [lines, args] of [
        [`# syntax=${front}/front\nFROM offsite/base\n`, {}],
        [`# syntax=${stranger.name}\nFROM offsite/base\n`, {}],
        ['FROM offsite/base\n', { BUILDKIT_SYNTAX: `${front}/front` }],
      ] as const) {
        write('Dockerfile', `${lines}${unique()}`);
        const trial = { environment: built({ args }), verify: 'true' };
        expect((await bench.trial('true', trial)).verdict, lines).toBe('passed');
      }
      expect(requests).toBe(0);
      await stranger[Symbol.asyncDispose]();
      write('Dockerfile', `FROM offsite/base\n${unique()}ADD ${address} /x\nADD Dockerfile *.yaml /files/\n`);
      const trial = { environment: built({}), verify: 'grep host /x\ntest -e /files/suite.yaml' };
      const { verdict } = await bench.trial('true', trial, { remoteAdd: 'allow' });
      expect(verdict).toBe('passed');
      expect(requests).toBeGreaterThan(0);
    } finally {
      server.close();
    }
  });

  test('is stopped when its time is up', async () => {
    write('Dockerfile', `FROM offsite/base\n${unique()}RUN echo waiting && sleep 100\n`);
    const environment = built({});
    const timeouts = { install: 1, build: 4_000, prepare: 1, harness: 1, verify: 1, validator: 1 };
    const { cause } = await bench.trial('true', { environment, verify: 'true' }, { timeouts });
    expect(cause).toMatchObject({ kind: 'task', phase: 'build' });
    expect(cause?.message).toContain('it was stopped after 4 s');
  });

  test.each(['nobody/has:this', 'Nobody!/has'])(
    'names the line whose base image the engine does not have: %s',
    async (image) => {
      write('Dockerfile', `# comment\nFROM offsite/base\nCOPY --from=${image} /a /b\n`);
      const { cause } = await bench.trial('true', { environment: built({}), verify: 'true' });
      expect(cause).toMatchObject({ kind: 'task', phase: 'build' });
      expect(cause?.message).toContain(`/Dockerfile:3: the engine has no image ${image}. Pull it`);
    },
  );

  test('is not built from files that have changed since the batch was planned', async () => {
    write('Dockerfile', `FROM offsite/base\n${unique()}COPY file /\n`);
    write('file', 'planned');
    const environment = built({});
    write('file', 'changed');
    const { cause } = await bench.trial('true', { environment, verify: 'true' });
    expect(cause).toMatchObject({ kind: 'task', message: expect.stringContaining('has changed since') });
  });
});
