import type Docker from 'dockerode';
import { expect, test } from 'vitest';
import { copyBaseImage } from '../../scripts/engines/base-image.ts';
import { clientOf } from '../../scripts/engines/client-of.ts';
import { engineEntry } from '../../scripts/engines/table.ts';
import { offsite, start } from '../cli/offsite.ts';
import { openPlace } from '../cli/place.ts';
import { until } from '../engine/engine-fixture.ts';
import { needs } from '../needs.ts';

/** Milliseconds; only a hang reaches them. */
const timeout = 900_000;

const name = process.env.OFFSITE_TEST_ENGINE;

// The machine's own engine is everybody's, so the one that is killed is a second one of the named kind.
needs(name !== undefined, '--engine NAME').describe('an engine of its own', () => {
  test('that is killed in the middle of 20 trials: all end with their true verdicts, and nothing is left', {
    timeout,
  }, async () => {
    const said: string[] = [];
    const ground = {
      log: (line: string) => void said.push(line),
      during: <T>(_: string, work: () => Promise<T>) => work(),
      env: process.env,
    };
    await using engine = await engineEntry(name ?? '').open(ground);
    await copyBaseImage(engine.socketPath, ground);
    using place = openPlace();
    const act = 'sleep 2; echo done > done.txt';
    const cases = [
      { id: 'right', verify: 'grep -q done done.txt', variables: { act } },
      { id: 'wrong', verify: 'grep -q other done.txt', variables: { act } },
    ];
    const env = { ...engine.env, DOCKER_HOST: engine.host } as Record<string, string>;
    // gVisor has a kernel of its own, without Offsite's filter.
    const sandbox = name === 'docker-gvisor' ? { seccomp: 'if-available' } : {};
    const running = start(place, ['run', place.suite({ cases, trials: 10, sandbox }), '--json', '-c', '3'], {
      env,
    });
    await running.printed(/[✓✗] (right|wrong)/);

    await engine.kill();
    await running.printed(/trials wait for the engine/);
    await engine.start();

    const { exitCode, stdout, stderr } = await running.ended;
    expect(exitCode, stderr).toBe(0);
    expect(JSON.parse(stdout), stderr).toMatchObject({ passed: 10, failed: 10, void: 0 });

    // What the killed engine still held is swept by the next agent, as after any crash.
    await until(async () => {
      await offsite(place, ['engine', 'clean'], { env });
      return (await listed(engine.socketPath)).length === 0;
    });
  });
});

/** All containers of the engine: nobody else uses it. */
async function listed(socketPath: string): Promise<Docker.ContainerInfo[]> {
  return clientOf(socketPath).listContainers({ all: true });
}
