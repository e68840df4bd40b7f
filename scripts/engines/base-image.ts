import { systemClock } from '../../src/base/clock.ts';
import { baseImageName, baseImageRecipe } from '../../src/base-image/recipe.ts';
import { connect, EngineUnreachable } from '../../src/engine/connection/connect.ts';
import { clientOf } from './client-of.ts';
import type { EngineGround } from './test-engine.ts';

/**
 * Copies the base image from the engine that this machine uses, if it has it: that takes seconds, and making
 * it again takes minutes. Otherwise does nothing.
 */
export async function copyBaseImage(
  socketPath: string,
  { env, signal, during }: EngineGround,
): Promise<void> {
  const name = baseImageName(baseImageRecipe);
  const source = await connect({ host: undefined, env, clock: systemClock, signal }).catch((error) => {
    if (error instanceof EngineUnreachable) return undefined;
    throw error;
  });
  if (source === undefined) return;
  try {
    // An engine over ssh or TLS has a socket too.
    const from = env.OFFSITE_TEST_SOCKET ?? /^unix:\/\/(\S+)/.exec(source.address)?.[1];
    if (from === undefined || (await source.port.images.find(name, signal)) === undefined) return;
    await during(`Copying ${name}`, async () => {
      const image = await clientOf(from).getImage(name).get();
      const to = clientOf(socketPath);
      for await (const _ of (await to.loadImage(image)) as AsyncIterable<Buffer>); // until it has all
      await to.getImage(name).tag({ repo: baseImageRecipe.repository, tag: 'latest' });
    });
  } finally {
    await source.close();
  }
}
