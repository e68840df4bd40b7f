import type { Capabilities } from '../port/capabilities.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { buildClassically } from './classic.ts';
import { buildThroughCli, findCli } from './docker-cli.ts';
import type { ImageBuilder } from './image-builder.ts';

/** BuildKit where the engine has it and a docker CLI can reach it; otherwise the classic builder. */
export async function findBuilder(
  port: EnginePort,
  { product, serverVersion }: Capabilities,
  host: string | undefined,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<ImageBuilder> {
  const cli = host === undefined || product === 'Podman' ? undefined : await findCli(host, env, signal);
  if (!cli)
    return { kind: 'classic', frontend: 'classic', build: (request) => buildClassically(port, request) };
  const frontend = Number.parseInt(serverVersion, 10) < firstCurrent ? 'older' : 'current';
  return { kind: 'buildkit', frontend, build: (request) => buildThroughCli(port, cli, request) };
}

/** Engines from this version on have a BuildKit with here-documents, `COPY --link` and `ADD --checksum`. */
const firstCurrent = 23;
