import { CREATED_LABEL, INSTANCE_LABEL, OWNED_LABEL, ROLE_LABEL } from '../labels.ts';
import type { RunningContainer } from './running-container.ts';

export interface CommitRequest {
  /** Repository and tag of the new image, such as `offsite/snapshot` and a hash. */
  repository: string;
  tag: string;
  labels?: Readonly<Record<string, string>>;
}

/**
 * Makes an image of the container's files and resolves with its id. The container is not paused, so nothing
 * but init should run in it.
 */
export async function commitContainer(
  { client, id }: RunningContainer,
  { repository, tag, labels }: CommitRequest,
  signal?: AbortSignal,
): Promise<string> {
  const query = new URLSearchParams({ container: id, pause: 'false', repo: repository, tag });
  const answer = await client.call(
    'making an image of a container',
    (abortSignal) =>
      client.dial<{ Id: string }>({
        method: 'POST',
        path: `/commit?${query}`,
        expected: [200, 201],
        body: {
          Labels: {
            ...labels,
            [OWNED_LABEL]: '1',
            [ROLE_LABEL]: 'snapshot',
            [CREATED_LABEL]: String(client.clock.now()),
            // The image outlives the instance: its labels must not name one that a sweep would find dead.
            [INSTANCE_LABEL]: '',
          },
        },
        abortSignal,
      }),
    { signal },
  );
  return answer.Id;
}
