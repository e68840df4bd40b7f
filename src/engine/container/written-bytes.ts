import type { RunningContainer } from './running-container.ts';

/** Bytes of all files in the container's own layer: what it wrote, and files of its image that it changed in any way. One round trip. */
export async function writtenBytes({ client, id }: RunningContainer, signal?: AbortSignal): Promise<number> {
  const { SizeRw } = await client.call(
    'measuring what a container wrote',
    (abortSignal) =>
      client.dial<{ SizeRw?: number }>({
        method: 'GET',
        path: `/containers/${id}/json?size=true`,
        expected: [200],
        abortSignal,
      }),
    { signal },
  );
  // The engine leaves out a zero.
  return SizeRw ?? 0;
}
