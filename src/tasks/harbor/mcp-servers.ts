import type { TaskMcpServer } from '../task.ts';
import type { Path } from '../unknown-keys.ts';
import type { HarborSource } from './source.ts';
import type { EnvironmentTable } from './task-toml.ts';

/** Where a server runs that the main container can reach without a service. */
const ownHosts = ['localhost', '127.0.0.1', '[::1]', 'main'];

/** @param services the names of the containers beside the main one */
export function readMcpServers(
  { document, remarks }: HarborSource,
  servers: EnvironmentTable['mcp_servers'],
  { path, services }: { path: Path; services: readonly string[] },
): TaskMcpServer[] {
  return servers.map(({ transport, url, command, ...server }, index) => {
    const at = (key: string, message: string) => document.issue([...path, index, key], message);
    remarks.uses('mcp-servers', at('name', server.name));
    if (!/^[\w-]+$/.test(server.name)) remarks.uses('mcp-name', at('name', server.name));
    for (const [name, value] of Object.entries(server.headers))
      if (/\$\{/.test(value)) remarks.uses('host-variable', at('headers', name));
    if (url !== undefined && transport !== 'stdio') {
      const host = URL.parse(url)?.hostname;
      if (host === undefined || ![...ownHosts, ...services].includes(host))
        remarks.uses('mcp-elsewhere', at('url', url));
    }
    return { ...server, transport: transport === 'streamable-http' ? 'http' : transport, url, command };
  });
}
