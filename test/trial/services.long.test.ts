import { describe, expect, test } from 'vitest';
import { noEnvironment } from '../../src/suite/environment.ts';
import type { PlannedService } from '../../src/suite/services.ts';
import { dockerOf } from '../engine/docker-of.ts';
import { bench, sharedBench } from './shared-bench.ts';
import { testImage } from './test-image.ts';
import { openTrialBench, type TrialBench, validator } from './trial-bench.ts';

sharedBench();

/** Keeps texts in memory: `POST /name` sets one, `GET /name` reads it. Prints each request. */
const store = `
const kept = new Map();
require('node:http').createServer((request, response) => {
  console.log(request.method, request.url);
  const name = request.url;
  if (request.method === 'GET') return response.writeHead(kept.has(name) ? 200 : 404).end(kept.get(name));
  let text = '';
  request.on('data', (part) => { text += part; }).on('end', () => { kept.set(name, text); response.end(); });
}).listen(80, () => console.error(process.env.GREETING ?? 'listening'));`;

const quick = { interval: 200, timeout: 5_000, startPeriod: 20_000, retries: 3 };

function service(name: string, more: Partial<PlannedService> = {}): PlannedService {
  return {
    name,
    aliases: [],
    image: { name: 'offsite/base', place: 'suite.yaml:9:5' },
    command: ['node', '-e', store],
    env: {},
    dependsOn: [],
    memoryFolders: [],
    resources: {},
    healthcheck: { command: 'curl -s -o /dev/null http://127.0.0.1/', ...quick },
    place: 'suite.yaml:8:5',
    ...more,
  };
}

const withServices = (...services: PlannedService[]) => ({ ...noEnvironment, services });

async function containersOf({ engine }: TrialBench): Promise<string[]> {
  const filters = { label: [`offsite.instance=${engine.instance}`, 'offsite.role=container'] };
  return (await dockerOf(engine).listContainers({ all: true, filters })).map(({ Id }) => Id);
}

describe.concurrent('the services of a case', () => {
  test('are reached by their names, from the harness, verify and the validator, with the state that the agent left', async () => {
    const result = await bench.trial(
      'mkdir -p .offsite/services; echo forged > .offsite/services/db.log; ' +
        'curl -s db/found || echo none; curl -s -d agent database/said; cat /etc/hosts | grep -c 10.213; id -u',
      {
        artifacts: ['**'],
        environment: withServices(
          service('db', { aliases: ['database'], env: { GREETING: 'hello from the store' } }),
          service('front', {
            dependsOn: [{ service: 'db', until: 'healthy' }],
            command: ['sh', '-c', 'curl -sf -d front db/found && exec node -e "$0"', store],
          }),
        ),
        verify: 'curl -s db/said | grep -x agent\ncurl -s -o /dev/null -w "%{http_code}" front/ | grep 404',
        validator: validator('#!/bin/bash\ncurl -sf db/said | grep -x agent'),
      },
    );
    expect(result.cause).toBeUndefined();
    expect(result.verdict).toBe('passed');
    expect(result.trajectory?.[0]?.output).toBe('front3\n0\n');
    const [db, front] = result.services ?? [];
    expect(db).toMatchObject({
      name: 'db',
      image: 'offsite/base',
      imageId: (await bench.engine.findImage('offsite/base'))?.id,
    });
    expect(db?.healthyAfterMs).toBeGreaterThan(0);
    expect(front?.startedAt).toBeGreaterThanOrEqual((db?.startedAt ?? 0) + (db?.healthyAfterMs ?? 0));
    const log = bench.blobs.read(db?.log ?? '').toString();
    expect(log).toContain('hello from the store\n');
    expect(log).toContain('POST /said\n');
    expect(log.match(/GET \/said/g)).toHaveLength(2);
    const logs = result.artifacts?.filter(({ path }) => path === '.offsite/services/db.log');
    expect(logs?.map(({ sha256 }) => sha256)).toEqual([db?.log]);
  });

  test('are new in each trial, and nothing is left of them', async ({ expect }) => {
    await using other = await openTrialBench();
    const once = () =>
      other.trial('curl -s -o /dev/null -w "%{http_code}" db/said; curl -s -d x db/said', {
        environment: withServices(service('db')),
        verify: 'curl -sf db/said',
      });
    const results = await Promise.all([once(), once()]);
    expect(results.map(({ verdict, trajectory }) => [verdict, trajectory?.[0]?.output])).toEqual([
      ['passed', '404'],
      ['passed', '404'],
    ]);
    await expect.poll(() => containersOf(other), { timeout: 60_000 }).toEqual([]);
  });

  test('may end as they are needed, and have files, folders in memory and limits', async () => {
    const seed = Buffer.from('seed\n');
    const result = await bench.trial('curl -s db/limits', {
      environment: withServices(
        service('setup', {
          command: ['sh', '-c', 'sleep 1; grep -q seed /seed/file && echo done'],
          healthcheck: 'none',
          files: [{ path: '/seed/file', content: seed, mode: 0o600 }],
        }),
        service('db', {
          dependsOn: [{ service: 'setup', until: 'ended' }],
          memoryFolders: ['/data'],
          resources: { memory: 64 * 2 ** 20, disk: 2 ** 20 },
          command: [
            'sh',
            '-c',
            'node -e "$0" & until curl -s -o /dev/null localhost; do sleep 0.1; done; ' +
              'head -c 9M /dev/zero > /data/all 2> /dev/null; ' +
              'curl -s -d "$(stat -c %s /data/all) $(awk \'/^Cap(Eff|Bnd)|^NoNewPrivs/ { print $2 }\' /proc/self/status | sort -u | tr "\\n" " ")" localhost/limits; wait',
            store,
          ],
          healthcheck: { command: ['curl', '-sf', 'http://127.0.0.1/limits'], ...quick },
        }),
      ),
      verify: 'true',
    });
    expect(result.cause).toBeUndefined();
    expect(result.trajectory?.[0]?.output).toBe(`${2 ** 20} 00000000000000cb 1 `);
    expect(result.services?.[0]).toMatchObject({ name: 'setup', exitCode: 0 });
    expect(bench.blobs.read(result.services?.[0]?.log ?? '').toString()).toBe('done\n');
  });

  test('that write more than they may are ended, and the result says so', async () => {
    const { services, verdict } = await bench.trial(
      'curl -s -o /dev/null -d go db/go; until ! curl -s -o /dev/null db/go; do sleep 0.2; done',
      {
        environment: withServices(
          service('db', {
            resources: { disk: 8 * 2 ** 20 },
            command: [
              'sh',
              '-c',
              'node -e "$0" & until curl -sf localhost/go; do sleep 0.1; done; head -c 64M /dev/zero > /all; wait',
              store,
            ],
          }),
        ),
        verify: 'true',
      },
    );
    expect(verdict).toBe('passed');
    expect(services?.[0]).toMatchObject({ outOfDisk: true });
  });

  test('of a Dockerfile run what the image says, as its user, and are healthy when the image says so', async () => {
    await using image = await testImage(
      bench.engine,
      'FROM offsite/base\nRUN useradd --uid 4321 server\nUSER server\nWORKDIR /home\nENV GREETING=image\nEXPOSE 80\n' +
        'VOLUME /var/lib/kept\nENTRYPOINT ["/bin/sh", "-c", "touch /var/lib/kept/x && echo $(id -u) $PWD $0 && exec node -e \\"$1\\"", "one"]\n' +
        'HEALTHCHECK --interval=1s --start-period=20s CMD curl -s -o /dev/null http://127.0.0.1/\n',
    );
    const result = await bench.trial('curl -s -o /dev/null -w "%{http_code}" db/', {
      environment: withServices(
        service('db', {
          image: { name: 'postgres:99', mappedTo: image.name, place: 'suite.yaml:9:5' },
          command: [store],
          healthcheck: undefined,
        }),
      ),
      verify: 'true',
    });
    expect(result.cause).toBeUndefined();
    expect(result.trajectory?.[0]?.output).toBe('404');
    // Its check may ask before the server has printed that it runs.
    expect(bench.blobs.read(result.services?.[0]?.log ?? '').toString()).toMatch(
      /^4321 \/home one\n(GET \/\n)*image\n/m,
    );
    expect(result.services?.[0]?.healthyAfterMs).toBeGreaterThanOrEqual(0);
    expect(result.mappedImages).toEqual([{ name: 'postgres:99', usedInstead: image.name }]);
  });

  test('that never become healthy make trials void for the task, with their log, and are started once for a case', async ({
    expect,
  }) => {
    const states: string[] = [];
    await using other = await openTrialBench({
      observeBuild: ({ what, state }) => states.push(`${what} ${state.kind}`),
    });
    const trial = () =>
      other.trial('true', {
        environment: withServices(
          service('db', {
            command: ['sh', '-c', 'echo $$ cannot listen; exec sleep infinity'],
            healthcheck: { command: 'echo trying; echo no; exit 7', ...quick, startPeriod: 500, retries: 2 },
          }),
        ),
        verify: 'true',
      });
    const [first, second] = [await trial(), await trial()];
    expect(first.verdict).toBe('void');
    expect(first.cause).toMatchObject({
      kind: 'task',
      phase: 'sandbox',
      message: expect.stringMatching(
        /^suite.yaml:8:5: the service db was not healthy after \d+ s; its check exited with 7: no$/,
      ),
      output: 'trying\nno\n1 cannot listen\n',
    });
    expect(second.cause).toEqual(first.cause);
    expect(states).toEqual(['services of case failed']);
    await expect.poll(() => containersOf(other), { timeout: 60_000 }).toEqual([]);
  });

  test('that end, or whose image is missing or has no command, make trials void with one message', async () => {
    const cause = async (change: Partial<PlannedService>) =>
      (await bench.trial('true', { environment: withServices(service('db', change)), verify: 'true' })).cause;
    expect(await cause({ command: ['sh', '-c', 'echo bad config >&2; exit 3'] })).toEqual({
      kind: 'task',
      phase: 'sandbox',
      message: 'suite.yaml:8:5: the service db ended with 3',
      output: 'bad config\n',
    });
    expect(await cause({ image: { name: 'none/such:1', place: 'suite.yaml:9:5' } })).toMatchObject({
      kind: 'task',
      message: expect.stringMatching(/^suite.yaml:9:5: the engine has no image none\/such:1\./),
    });
    expect(await cause({ entrypoint: [], command: [] })).toMatchObject({
      kind: 'task',
      message: expect.stringContaining('names no command'),
    });
    for (const program of ['/no/such/program', 'no-such-program', './none'])
      expect(await cause({ command: [program], healthcheck: 'none' })).toEqual({
        kind: 'task',
        phase: 'sandbox',
        message: `suite.yaml:8:5: the service db has no program "${program}"`,
      });
    for (const user of ['ghost', 'root:ghosts', '99999999999'])
      expect(await cause({ command: ['sleep', '9'], healthcheck: 'none', user })).toEqual({
        kind: 'task',
        phase: 'sandbox',
        message: `suite.yaml:8:5: the image of the service db has no user ${user}`,
      });
    expect(await cause({ command: ['sleep', '9'], workdir: `/${'w'.repeat(300)}` })).toMatchObject({
      kind: 'task',
      message: expect.stringContaining('the working folder of the service db is longer than engines take'),
    });
  });
});
