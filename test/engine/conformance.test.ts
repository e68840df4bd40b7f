import { beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/base/clock.ts';
import { commandChecks } from '../../src/engine/conformance/files.ts';
import { examineConformance } from '../../src/engine/conformance/testbed.ts';
import { wallChecks } from '../../src/engine/conformance/walls.ts';
import { plainRuntimes } from '../../src/engine/port/engine-port.ts';
import { dockerOf } from './docker-of.ts';
import { engine, sharedEngine } from './shared-engine.ts';

sharedEngine();
let imageId: string;
beforeAll(async () => {
  imageId = (await engine.findImage('offsite/base'))?.id ?? '';
});

test('an engine that always reports success fails the checks of how commands end', async () => {
  const { port } = engine;
  const exec: typeof port.containers.exec = async (id, command) => {
    const opened = await port.containers.exec(id, command);
    if (!opened.started) return opened;
    const inspect = async () => ({ running: false, exitCode: 0, neverStarted: false });
    return { started: true, exec: { ...opened.exec, inspect } };
  };
  const rosy = { ...engine, port: { ...port, containers: { ...port.containers, exec } } };
  const ofEnds = [
    'reports the exit code of each command',
    'says when it cannot start a command',
    'ends the stream of a command when its container is killed',
    'does not report a command as finished if its stream was cut',
  ];
  const others = ['runs a command with the usual umask'];
  const checks = commandChecks.filter(({ name }) => [...ofEnds, ...others].includes(name));
  const seen = await examineConformance(checks, rosy, { imageId, clock: systemClock });
  expect(seen.filter(({ state }) => state === 'failed').map(({ name }) => name)).toEqual(ofEnds);
});

test('an engine that lets programs gain privileges fails the check of privileges', async () => {
  const { port } = engine;
  const create: typeof port.containers.create = async (request) => {
    const { id } = await dockerOf(engine).createContainer({
      Image: request.imageId,
      Entrypoint: [...request.command],
      Labels: request.labels,
      HostConfig: { NetworkMode: 'none', CapDrop: ['ALL'], CapAdd: [...request.capabilities] },
    });
    return { id, warnings: [] };
  };
  const loose = { ...engine, port: { ...port, containers: { ...port.containers, create } } };
  const checks = wallChecks.filter(({ name }) => name.startsWith('gives only the requested privileges'));
  const [seen] = await examineConformance(checks, loose, { imageId, clock: systemClock });
  // gVisor itself runs no program as another user than its caller's.
  const isPlain = plainRuntimes.includes(engine.capabilities.defaultRuntime);
  expect(seen).toMatchObject(
    isPlain
      ? { state: 'failed', found: expect.stringContaining('a set-user-id program') }
      : { state: 'held' },
  );
});
