import { serverFacts } from '../../bounds/model.ts';
import { type LookOptions, lookAtServer, type ServerLook } from '../../gateway/probe/look-at-server.ts';

/** The servers of models on this machine. Connects to these ports of 127.0.0.1, without a key. */
export async function nearbyServers(
  ports: readonly number[],
  options: Pick<LookOptions, 'clock' | 'signal'>,
): Promise<ServerLook[]> {
  const asked = [...new Set(ports)].slice(0, serverFacts.count.ports);
  const looks = asked.map((port) =>
    lookAtServer(`http://127.0.0.1:${port}`, {
      ...options,
      env: {},
      within: serverFacts.time.nearby,
    }).catch(() => undefined),
  );
  const found = await Promise.all(looks);
  options.signal.throwIfAborted();
  return found.flatMap((look) => look ?? []);
}
