import { OffsiteError } from '../../offsite-error.ts';
import type { RunningContainer } from './running-container.ts';

/** When the container was created, in epoch milliseconds of the engine's clock. One round trip. */
export async function askWhenMade({ client, id }: RunningContainer, signal?: AbortSignal): Promise<number> {
  const { Created } = await client.call(
    'asking when a container was made',
    (abortSignal) => client.docker.getContainer(id).inspect({ abortSignal }),
    { signal },
  );
  const madeAt = Date.parse(Created);
  if (!Number.isNaN(madeAt)) return madeAt;
  throw new OffsiteError(`The engine does not say when a container was made: ${Created}`, {
    code: 'ENGINE_PROTOCOL',
    kind: 'infrastructure',
  });
}
