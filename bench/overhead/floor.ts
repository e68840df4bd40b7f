import type { Engine } from '../../src/engine/engine.ts';

/**
 * The floor: what the engine itself costs for one container without network that runs one command. Create, start, one exec, remove,
 * straight through the Engine API with nothing between. Resolves when the container is gone.
 *
 * @param network `none` is the documented way (`--network none`); `disabled` leaves out the engine's set-up of an empty network, as
 *   Offsite does, and is the strictest floor there is
 */
export async function floorTrial(
  engine: Engine,
  imageId: string,
  network: 'none' | 'disabled',
): Promise<void> {
  const { docker } = engine;
  const container = await docker.createContainer({
    Image: imageId,
    Cmd: ['sleep', 'infinity'],
    NetworkDisabled: network === 'disabled',
    HostConfig: { NetworkMode: 'none' },
    Labels: { offsite: '1', 'offsite.instance': engine.instance },
  });
  try {
    await container.start();
    const exec = await container.exec({ Cmd: ['true'], AttachStdout: true, AttachStderr: true });
    const stream = await exec.start({ hijack: true, stdin: false });
    stream.resume();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    stream.on('end', resolve).on('close', resolve).on('error', reject);
    await promise;
    const { ExitCode } = await exec.inspect();
    if (ExitCode !== 0) throw new Error(`the floor's command exited with ${ExitCode}`);
  } finally {
    await container.remove({ force: true });
  }
}
