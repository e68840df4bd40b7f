import { ByteStore } from '../../base/byte-store.ts';
import { engineAnswers } from '../../bounds/sandbox.ts';
import type { FilesystemChange } from '../port/containers.ts';
import type { DockerClient } from './client.ts';
import { requestFailure } from './failure.ts';

const kinds = ['modified', 'added', 'deleted'] as const;
const doing = 'listing what a container changed';

/** Lists how the container differs from its image, while the answer arrives. */
export async function* listChanges(client: DockerClient, id: string): AsyncGenerator<FilesystemChange> {
  const answer = await client.askForStream(doing, { method: 'GET', path: `/containers/${id}/changes?` });
  try {
    for await (const change of streamedObjects(answer)) {
      const { Path, Kind } = change as { Path: string; Kind: 0 | 1 | 2 };
      yield { path: Path, kind: kinds[Kind] };
    }
  } catch (thrown) {
    throw requestFailure(doing, thrown);
  } finally {
    answer.destroy();
  }
}

const [quote, backslash, open, close] = Buffer.from('"\\{}');

/**
 * Yields the objects of a JSON array as they arrive, each parsed separately, so an array of a million is
 * never in memory as a whole. The objects must not contain objects. Throws an `Error` if one is too large.
 */
async function* streamedObjects(source: AsyncIterable<Buffer>): AsyncGenerator<unknown> {
  const object = new ByteStore();
  let isInside = false;
  let isText = false;
  let isEscaped = false;
  for await (const chunk of source) {
    let from = 0;
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (isEscaped) isEscaped = false;
      else if (isText) {
        if (byte === backslash) isEscaped = true;
        else if (byte === quote) isText = false;
      } else if (byte === quote) isText = true;
      else if (byte === open && !isInside) {
        isInside = true;
        from = at;
      } else if (byte === close && isInside) {
        object.add(chunk.subarray(from, at + 1));
        isInside = false;
        yield JSON.parse(object.take().toString());
      }
    }
    if (!isInside) continue;
    object.add(chunk.subarray(from));
    if (object.size > engineAnswers.bytes.object)
      throw new Error('the engine sent an object that is too large');
  }
}
