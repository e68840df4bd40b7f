import { serverFacts } from '../../bounds/model.ts';
import { type LookOptions, lookAtServer, type ServerLook } from '../../gateway/probe/look-at-server.ts';

/** Where servers of models listen by default. */
export const usualPorts: readonly number[] = [
  11_434, // Ollama
  8_080, // llama.cpp, TGI
  8_000, // vLLM
  1_234, // LM Studio
  5_001, // KoboldCpp
  30_000, // SGLang
  4_000, // LiteLLM
];

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
