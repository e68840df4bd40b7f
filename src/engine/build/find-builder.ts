import type { Capabilities } from '../port/capabilities.ts';
import type { EnginePort } from '../port/engine-port.ts';
import { buildClassically } from './classic.ts';
import { buildThroughCli, findCli } from './docker-cli.ts';
import type { ImageBuilder } from './image-builder.ts';

/** BuildKit where the engine has it and a docker CLI can reach it; otherwise the classic builder. */
export async function findBuilder(
  port: EnginePort,
  { takesFilters }: Capabilities,
  host: string | undefined,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<ImageBuilder> {
  // Podman takes no filters, and has no BuildKit.
  const cli = host === undefined || !takesFilters ? undefined : await findCli(host, env, signal);
  return cli
    ? { kind: 'buildkit', build: (request) => buildThroughCli(port, cli, request) }
    : { kind: 'classic', build: (request) => buildClassically(port, request) };
}
