import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cuttingProxy } from '../engine/cutting-proxy.ts';
import { sshServer } from '../engine/ssh-server.ts';
import { type TlsEngine, tlsEngine } from '../engine/tls-engine.ts';
import { loadBaseImage } from '../engine/with-base-image.ts';
import { offsite, start } from './offsite.ts';
import { openPlace } from './place.ts';

// One engine of the test's own, behind a real sshd and behind TLS. Nobody else uses it.
let tls: TlsEngine;
beforeAll(async () => {
  tls = await tlsEngine({ storageDriver: 'overlay2' });
  await tls.own.start();
  await loadBaseImage(tls.own.host);
});
afterAll(() => tls?.[Symbol.asyncDispose](), 120_000);

/** A way to the engine that the test may cut. */
interface Way extends AsyncDisposable {
  /** The engine, as offsite.yaml names it. */
  engine: Record<string, unknown>;
  env: Record<string, string>;
  /** Cuts every connection. New ones work. */
  cut(): Promise<void>;
}

async function overSsh(): Promise<Way> {
  const server = await sshServer();
  const { PATH = '' } = server.env;
  return {
    engine: { host: `${server.host}${tls.own.host.slice('unix://'.length)}` },
    env: { PATH },
    cut: () => server.cut(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

async function overTls(): Promise<Way> {
  const proxy = await cuttingProxy({ before: tls.port });
  return {
    engine: { host: proxy.host },
    env: { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: tls.certificates.client },
    cut: async () => proxy.cut('reset'),
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  };
}

/** What the scripted model has the agent do: a command that is seen among this machine's processes. */
const working = 'sleep 2.71828';

interface Summary {
  runs: { case: string; trials: { ordinal: number; attempts: { cause?: { kind: string } }[] }[] }[];
}

for (const [name, open] of [
  ['ssh', overSsh],
  ['TLS', overTls],
] as const) {
  test(`a whole run over ${name}, whose connection is cut in the middle: all verdicts are true`, async () => {
    await using way = await open();
    using place = openPlace();
    place.write('turns.yaml', `turns: [{ run: "${working}; echo hello > answer" }, { text: Done. }]\n`);
    place.suite({
      cases: [],
      config: { engine: way.engine, models: { told: { scripted: 'turns.yaml' } } },
    });
    const suite = place.write(
      'suite.yaml',
      JSON.stringify({
        suite: { id: 'remote', prompt: 'Say hello.' },
        variants: [{ model: 'told', harness: 'bash', sandbox: 'local' }],
        trials: 5,
        cases: [
          { id: 'right', verify: 'grep -q hello answer', artifacts: ['answer'] },
          { id: 'wrong', verify: 'grep -q bye answer', artifacts: ['answer'] },
        ],
      }),
    );
    const { env } = way;
    const running = start(place, ['run', suite, '--json', '-c', '2'], { env });
    await running.printed(/[✓✗] (right|wrong)/);
    await expect.poll(() => processes(working), { interval: 50, timeout: 60_000 }).toHaveLength(2);
    await way.cut();
    const { stdout, stderr, exitCode } = await running.ended;
    expect(exitCode, stderr).toBe(0);
    const summary: Summary = JSON.parse(stdout);
    expect(summary, stderr).toMatchObject({ passed: 5, failed: 5, void: 0 });
    const attempts = summary.runs.flatMap(({ trials }) => trials).flatMap((trial) => trial.attempts);
    const spoilt = attempts.filter(({ cause }) => cause?.kind === 'infrastructure');
    // Both commands were running, but on a busy machine one may end before the cut.
    expect(spoilt.length, stderr).toBeGreaterThanOrEqual(1);
    for (const { case: id, trials } of summary.runs) {
      for (const { ordinal } of trials) {
        const out = join(place.folder, `${id}-${ordinal}`);
        const { exitCode, stderr } = await offsite(place, [
          'trial',
          'artifacts',
          `${id}#${ordinal}`,
          '--out',
          out,
        ]);
        expect(exitCode, stderr).toBe(0);
        expect(await readFile(join(out, 'answer'), 'utf8')).toBe('hello\n');
      }
    }
    expect(await containers()).toEqual([]);
  });
}

/** All that the engine has, of whatever owner. */
async function containers(): Promise<string[]> {
  const { stdout } = await execa('docker', ['--host', tls.own.host, 'ps', '--all', '--quiet']);
  return stdout.split('\n').filter((id) => id !== '');
}

/** The processes with this command line. Those in the engine's containers are this machine's too. */
async function processes(command: string): Promise<string[]> {
  const { stdout } = await execa('ps', ['-eo', 'args', '--no-headers']);
  return stdout.split('\n').filter((line) => line === command);
}
