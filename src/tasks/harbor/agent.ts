import { posix } from 'node:path';
import type { TaskAgent, TaskArtifact } from '../task.ts';
import type { Path } from '../unknown-keys.ts';
import { type HarborSource, readNetwork } from './source.ts';
import type { AgentTable, ArtifactTable } from './task-toml.ts';

export function readAgent(source: HarborSource, table: AgentTable, path: Path): TaskAgent {
  const { document, remarks } = source;
  if (table.user !== undefined) remarks.uses('agent-user', document.issue([...path, 'user'], table.user));
  if (table.timeout_sec === undefined) remarks.uses('agent-without-limit', document.issue(path, ''));
  return { timeoutMs: table.timeout_sec, user: table.user, network: readNetwork(source, table, path) };
}

export function readArtifacts(
  { document, remarks }: HarborSource,
  artifacts: readonly ArtifactTable[],
  path: Path,
): TaskArtifact[] {
  return artifacts.map(({ source, destination, exclude, service }, index) => {
    const at = document.issue([...path, index], source);
    remarks.uses('artifacts', at);
    if (posix.normalize(source) === '/') remarks.uses('whole-artifact', at);
    if (exclude.length > 0) remarks.uses('artifact-exclude', at);
    if (service !== 'main') remarks.uses('service-artifact', { ...at, message: `${source} of ${service}` });
    return { source, destination, exclude, service };
  });
}
