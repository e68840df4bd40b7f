import type { Engine } from '../../src/engine/engine.ts';

/** The round trips of a look for an image. Podman's Docker API leaves out a part of it. */
export function lookTrips({ capabilities }: Engine): number {
  return capabilities.product === 'Podman' ? 2 : 1;
}
